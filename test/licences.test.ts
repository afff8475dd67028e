/** Everything that the package brings at run time has a known, permissive licence, and is in the bill of materials. */
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import manifest from "../package.json" with { type: "json" }
import {
  isUnusedBuild,
  missingOptionals,
  packageName,
  readLock,
  runtimePackages,
} from "../scripts/locked-packages.ts"
import { billOfMaterials, isPermitted, licenceOf } from "../scripts/sbom.ts"

const root = join(import.meta.dirname, "..")
const lock = readLock()
const runtime = runtimePackages(lock)

test("every runtime package has a permitted licence", () => {
  const refused = Object.entries(runtime)
    .map(([place, { name, license }]) => [place, licenceOf(name ?? packageName(place), license)] as const)
    .filter(([, licence]) => !isPermitted(licence))
  expect(refused).toEqual([])
})

test("what the lock says of a licence is what the installed package says", () => {
  const installed = Object.entries(runtime).filter(([place]) => existsSync(join(root, place, "package.json")))
  expect(installed.length).toBeGreaterThan(100)
  for (const [place, { license }] of installed) {
    const stated = JSON.parse(readFileSync(join(root, place, "package.json"), "utf8")) as {
      license?: unknown
    }
    if (typeof stated.license === "string") expect([place, license]).toEqual([place, stated.license])
  }
})

test.each([
  ["MIT", true],
  ["(MIT OR GPL-3.0-only)", true],
  ["Apache-2.0 AND BSD-3-Clause", true],
  ["MIT AND GPL-2.0-or-later", false],
  ["AGPL-3.0-only", false],
  ["UNLICENSED", false],
  [undefined, false],
])("the licence %s is permitted: %s", (licence, permitted) => expect(isPermitted(licence)).toBe(permitted))

describe("the bill of materials", () => {
  const { components, metadata } = billOfMaterials(manifest, runtime)

  test("names every runtime package with its version, hash and licence, and nothing of development", () => {
    expect(metadata.component).toMatchObject({ name: manifest.name, version: manifest.version })
    const names = components.map(({ name }) => name)
    for (const name of Object.keys(manifest.dependencies)) expect(names).toContain(name)
    for (const name of ["vitest", "vite", "react", "typescript", "node"]) expect(names).not.toContain(name)
    for (const { purl, version, licenses } of components) {
      expect(purl).toMatch(/^pkg:npm\/(?:%40[\w.-]+\/)?[\w.-]+@[\w.+-]+$/)
      expect([purl, version !== "", licenses.length]).toEqual([purl, true, 1])
    }
  })

  test("hashes are those of the lock, in hexadecimal", () => {
    const zod = components.find(({ name }) => name === "zod")
    const integrity = lock["node_modules/zod"]?.integrity ?? ""
    expect(Buffer.from(zod?.hashes[0]?.content ?? "", "hex").toString("base64")).toBe(integrity.slice(7))
  })
})

test("the lock names the packages of every platform, as npm ci demands, and no unused build of llama.cpp", () => {
  expect(missingOptionals(lock)).toEqual([])
  const named = Object.entries(lock).flatMap(([place, entry]) => [
    place,
    ...Object.keys(entry.optionalDependencies ?? {}),
  ])
  expect(named.filter(isUnusedBuild)).toEqual([])
})
