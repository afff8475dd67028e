/** The command on a Node that is too old: which Node it finds, and when npm is asked. A script stands for npm and writes down its arguments. */
import { spawnSync } from "node:child_process"
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect, test } from "vitest"

const source = join(import.meta.dirname, "..", "bin", "newer-node.js")

interface Machine {
  /** Whether a Node lies in its node_modules. */
  readonly hasOwn: boolean
  /** What the script for npm does, in the shell's words. */
  readonly npm: string
}

function runOn({ hasOwn, npm }: Machine) {
  const folder = mkdtempSync(join(tmpdir(), "umpire-node-"))
  const own = join(folder, "node_modules", "node", "bin")
  for (const path of [join(folder, "bin"), own]) mkdirSync(path, { recursive: true })
  if (hasOwn) symlinkSync(process.execPath, join(own, "node"))
  copyFileSync(source, join(folder, "bin", "newer-node.js"))
  writeFileSync(join(folder, "package.json"), '{"type":"module"}')
  writeFileSync(join(folder, "bin", "npm"), `#!/bin/sh\necho "$@" >> ${folder}/asked\n${npm}\n`, {
    mode: 0o755,
  })
  writeFileSync(join(folder, "bin", "command.js"), "process.stdout.write(process.argv[2])")
  const program = `const { runWithNewerNode } = await import("${folder}/bin/newer-node.js")
process.exitCode = await runWithNewerNode("${folder}/bin/command.js", ["an argument"])`
  const { status, stdout, stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", program], {
    encoding: "utf8",
    env: { PATH: `${folder}/bin:/usr/bin:/bin` },
  })
  const asked = join(folder, "asked")
  const calls = existsSync(asked) ? readFileSync(asked, "utf8").trim().split("\n") : []
  return { status, stdout, stderr, offline: calls.map((call) => call.includes("--offline")) }
}

const bringsNode = `echo ${process.execPath}`

test("the Node of a clone is used, and npm is not asked", () => {
  expect(runOn({ hasOwn: true, npm: "exit 1" })).toEqual({
    status: 0,
    stdout: "an argument",
    stderr: "",
    offline: [],
  })
})

test("the Node that npm keeps is used, without a word to the registry", () => {
  expect(runOn({ hasOwn: false, npm: bringsNode })).toEqual({
    status: 0,
    stdout: "an argument",
    stderr: "",
    offline: [true],
  })
})

test("one that npm has to bring is announced, and fetched once", () => {
  const found = runOn({ hasOwn: false, npm: `case "$*" in *--offline*) exit 1;; esac; ${bringsNode}` })
  expect(found).toMatchObject({ status: 0, stdout: "an argument", offline: [true, false] })
  expect(found.stderr).toContain("which npm brings once")
})

test("where npm can bring none, one sentence says what is needed", () => {
  const found = runOn({ hasOwn: false, npm: "exit 1" })
  expect(found).toMatchObject({ status: 1, stdout: "", offline: [true, false] })
  expect(found.stderr).toContain("umpire: needs Node 22.19 or newer")
})
