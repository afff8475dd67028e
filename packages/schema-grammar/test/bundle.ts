/** Real schemas from the files of a package, each made self-contained as a request needs it. */
import { readdirSync, readFileSync, statSync } from "node:fs"
import { join, posix } from "node:path"
import { parse as parseYaml } from "yaml"
import type { JsonObject } from "../src/json-object.ts"

export interface RealSchema {
  /** The file, and the name of the schema in an OpenAPI document. */
  readonly source: string
  readonly schema: JsonObject
}

export interface SampleSize {
  /** Files and, in each OpenAPI document, schemas: evenly spaced in the order of their names. */
  readonly filesMax: number
  readonly schemasPerDocumentMax: number
}

const FILE_BYTES_MAX = 32 * 1024 * 1024
const DRAFT_04 = "http://json-schema.org/draft-04/schema#"
/** Values in them are examples or instances, in which `$ref` and `id` mean nothing. */
const instances = new Set(["enum", "const", "default", "example", "examples"])

const isObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)

export function schemasOf(folder: string, { filesMax, schemasPerDocumentMax }: SampleSize): RealSchema[] {
  const found = new Package(folder)
  const files = found.files.filter((file) => found.isSource(file))
  return spaced(files, filesMax).flatMap((file) => {
    const document = found.document(file)
    if (!isObject(document)) return []
    const named = namedSchemas(document)
    if (named === null) return [{ source: file, schema: found.bundleFile(file, document) }]
    return spaced(Object.keys(named.schemas).toSorted(), schemasPerDocumentMax).flatMap((name) => {
      const schema = found.bundlePart(file, `${named.pointer}/${escapePointer(name)}`)
      if (!schema) return []
      return [
        { source: `${file} ${name}`, schema: named.isDraft04 ? { $schema: DRAFT_04, ...schema } : schema },
      ]
    })
  })
}

/** So many of them, from the first on, at equal distances. */
function spaced<One>(all: readonly One[], countMax: number): readonly One[] {
  if (all.length <= countMax) return all
  return Array.from(
    { length: countMax },
    (_, index) => all[Math.floor((index * all.length) / countMax)],
  ).filter((one) => one !== undefined)
}

interface NamedSchemas {
  readonly pointer: string
  readonly schemas: JsonObject
  readonly isDraft04: boolean
}

/** Of an OpenAPI document; null for one that is a schema itself. */
function namedSchemas(document: JsonObject): NamedSchemas | null {
  if (typeof document["swagger"] === "string")
    return {
      pointer: "/definitions",
      schemas: isObject(document["definitions"]) ? document["definitions"] : {},
      isDraft04: true,
    }
  if (typeof document["openapi"] !== "string") return null
  const components = isObject(document["components"]) ? document["components"] : {}
  const schemas = isObject(components["schemas"]) ? components["schemas"] : {}
  return { pointer: "/components/schemas", schemas, isDraft04: document["openapi"].startsWith("3.0") }
}

class Package {
  readonly files: readonly string[]
  readonly #folder: string
  readonly #documents = new Map<string, unknown>()
  #byId: Map<string, string> | undefined

  constructor(folder: string) {
    this.#folder = folder
    this.files = readdirSync(folder, { recursive: true, encoding: "utf8" })
      .map((file) => file.replaceAll("\\", "/"))
      .filter((file) => /\.(json|ya?ml)$/.test(file) && !/(^|\/)(package|tsconfig)\.json$/.test(file))
      .filter((file) => statSync(join(folder, file)).isFile())
      .filter((file) => statSync(join(folder, file)).size <= FILE_BYTES_MAX)
      .toSorted()
  }

  document(file: string): unknown {
    if (!this.#documents.has(file)) {
      if (this.#documents.size > 2000) this.#documents.clear()
      this.#documents.set(file, read(join(this.#folder, file)))
    }
    return this.#documents.get(file)
  }

  /** An OpenAPI document, or a JSON schema that names its draft. */
  isSource(file: string): boolean {
    const document = this.document(file)
    if (!isObject(document)) return false
    const { $schema } = document
    const isSchema =
      typeof $schema === "string" &&
      /json-schema\.org|json-schema$/.test($schema) &&
      ["properties", "type", "$ref", "oneOf", "anyOf", "allOf", "items", "enum"].some((key) =>
        Object.hasOwn(document, key),
      )
    return isSchema || typeof document["openapi"] === "string" || typeof document["swagger"] === "string"
  }

  /** A file whose references stay inside it is used as it is; what others point to is added to its definitions. */
  bundleFile(file: string, document: JsonObject): JsonObject {
    const bundle = new Bundle(this, file, "")
    const copied = bundle.copy(document, file) as JsonObject
    return bundle.with(copied)
  }

  /** One schema of a document, with everything that it refers to. */
  bundlePart(file: string, pointer: string): JsonObject | null {
    const bundle = new Bundle(this, file, pointer)
    const part = follow(this.document(file), pointer)
    return isObject(part) ? bundle.with(bundle.copy(part, file) as JsonObject) : null
  }

  /** The file and the pointer in it that a reference leads to; null when it is not in this package. */
  locate(reference: string, from: string): readonly [string, string] | null {
    const [address = "", fragment = ""] = reference.split("#")
    const pointer = decodeURIComponent(fragment)
    const file = address === "" ? from : this.#fileAt(address, from)
    if (file === null || (pointer !== "" && !pointer.startsWith("/"))) return null
    return follow(this.document(file), pointer) === undefined ? null : [file, pointer]
  }

  #fileAt(address: string, from: string): string | null {
    if (!/^[a-z]+:/i.test(address)) {
      const relative = posix.join(posix.dirname(from), address)
      const known = [relative, `${relative}.json`].find((file) => this.files.includes(file))
      if (known !== undefined) return known
    }
    this.#byId ??= this.#identifiers()
    const base = isObject(this.document(from)) ? (this.document(from) as JsonObject) : {}
    const id = base["$id"] ?? base["id"]
    return this.#byId.get(plainAddress(absolute(address, typeof id === "string" ? id : ""))) ?? null
  }

  #identifiers(): Map<string, string> {
    const found = new Map<string, string>()
    for (const file of this.files) {
      const document = this.document(file)
      const id = isObject(document) ? (document["$id"] ?? document["id"]) : undefined
      if (typeof id === "string") found.set(plainAddress(id), file)
    }
    return found
  }
}

/** Copies a schema, and gathers what its references lead to. */
class Bundle {
  readonly #package: Package
  readonly #file: string
  readonly #pointer: string
  readonly #names = new Map<string, string>()
  readonly #added: Record<string, unknown> = {}

  constructor(from: Package, file: string, pointer: string) {
    this.#package = from
    this.#file = file
    this.#pointer = pointer
  }

  with(schema: JsonObject): JsonObject {
    if (Object.keys(this.#added).length === 0) return schema
    const own = isObject(schema["$defs"]) ? schema["$defs"] : {}
    return { ...schema, $defs: { ...own, ...this.#added } }
  }

  copy(value: unknown, file: string): unknown {
    if (Array.isArray(value)) return value.map((one) => this.copy(one, file))
    if (!isObject(value)) return value
    const isAdded = file !== this.#file || this.#pointer !== ""
    return Object.fromEntries(
      Object.entries(value)
        // An added part has no address of its own: its references are those of the whole.
        .filter(([key, one]) => !(isAdded && (key === "$id" || key === "id") && typeof one === "string"))
        .map(([key, one]) => [
          key,
          key === "$ref" && typeof one === "string"
            ? this.#reference(one, file)
            : instances.has(key) && !isObject(one)
              ? one
              : this.copy(one, file),
        ]),
    )
  }

  #reference(reference: string, file: string): string {
    const isWholeFile = this.#pointer === ""
    if (isWholeFile && file === this.#file && reference.startsWith("#")) return reference
    const located = this.#package.locate(reference, file)
    if (!located) return reference
    const [target, pointer] = located
    if (target === this.#file && pointer === this.#pointer) return "#"
    if (isWholeFile && target === this.#file) return `#${encodeURI(pointer)}`
    const key = `${target}#${pointer}`
    const known = this.#names.get(key)
    if (known !== undefined) return known
    const name = `bundled-${this.#names.size}`
    this.#names.set(key, `#/$defs/${name}`)
    this.#added[name] = true
    this.#added[name] = this.copy(follow(this.#package.document(target), pointer), target)
    return `#/$defs/${name}`
  }
}

function read(path: string): unknown {
  const text = readFileSync(path, "utf8")
  try {
    return path.endsWith(".json") ? JSON.parse(text) : parseYaml(text)
  } catch {
    return undefined
  }
}

function follow(document: unknown, pointer: string): unknown {
  let found = document
  for (const step of pointer.split("/").slice(1)) {
    const key = step.replaceAll("~1", "/").replaceAll("~0", "~")
    found = typeof found === "object" && found !== null ? (found as JsonObject)[key] : undefined
  }
  return found
}

const escapePointer = (name: string): string => name.replaceAll("~", "~0").replaceAll("/", "~1")

function absolute(address: string, base: string): string {
  try {
    return new URL(address, base).href
  } catch {
    return address
  }
}

/** Without what servers leave out: the scheme, an empty fragment, and the ending of the file. */
const plainAddress = (address: string): string =>
  address
    .replace(/#$/, "")
    .replace(/^https?:\/\//, "")
    .replace(/\.json$/, "")
