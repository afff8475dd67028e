/** Reads a question set that was exported with what was taught. */
import { sha256 } from "../../base/hash.ts"
import { Fault } from "../../contract/errors.ts"
import { setFileBytesMax, TaughtSetFile } from "../../contract/question-sets/content.ts"
import type { TaughtArtefact } from "../../scoring/teach/artefact.ts"
import { type AskedVersion, compileVersion } from "./version.ts"

const utf8 = new TextEncoder()

/** Throws Fault `invalid_body` for what is no such file or was taught on another model than the one of `modelVersion`. */
export async function readSetFile(bytes: Uint8Array, modelVersion: string): Promise<AskedVersion> {
  const { name, version, hash, content, artefacts } = parse(bytes)
  const taught = new Map<string, TaughtArtefact>()
  for (const body of artefacts) taught.set(await sha256(utf8.encode(body)), readArtefact(body))
  for (const { name: question, artefact } of content.questions)
    if (artefact && !taught.has(artefact))
      throw unusable(`what was taught of ${question} is not in it or was changed`)
  for (const { modelVersion: needed, cascade } of taught.values()) {
    if (cascade) throw unusable("it was taught on a cascade of several models")
    if (needed !== modelVersion)
      throw unusable(`it was taught on ${needed}, and the model here is ${modelVersion}`)
  }
  return compileVersion({ setId: name, setName: name, number: version, hash }, content, taught)
}

function parse(bytes: Uint8Array): TaughtSetFile {
  if (bytes.byteLength > setFileBytesMax) throw unusable(`it has over ${setFileBytesMax} bytes`)
  const parsed = TaughtSetFile.safeParse(parseJson(new TextDecoder().decode(bytes)))
  if (parsed.success) return parsed.data
  const { path, message } = parsed.error.issues[0] ?? { path: [], message: "it has another form" }
  throw unusable(`${path.length === 0 ? "its top" : path.join(".")}: ${message}`)
}

// Its hash was checked, and the job that taught it wrote it.
const readArtefact = (body: string): TaughtArtefact => parseJson(body) as TaughtArtefact

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw unusable("it is not JSON", cause)
  }
}

const unusable = (why: string, cause?: unknown): Fault =>
  new Fault("invalid_body", `Cannot use the set's file: ${why}`, { cause })
