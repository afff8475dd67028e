/** The thread behind the library in Node. The network's own thread starts first, and this one loads what reads requests meanwhile. */
import { existsSync } from "node:fs"
import { includedModelFile } from "../base/included-models.ts"
import { installAdvice } from "../base/catalog.ts"
import { servePeer } from "../base/peer/serve.ts"
import { Fault } from "../contract/errors.ts"
import { startGraphThread } from "../engine/encoder/threaded-graph.ts"
import { admitAny, type EmbedEngine } from "../engine/engine.ts"
import { type LibraryService, libraryHandlers } from "./service.ts"

export interface NodeModel {
  /** The name of one that ships, or a path. */
  readonly model: string
  readonly threads?: number
}

// As `encoder/child.ts` does for its process.
process.env["ORT_DISABLE_TELEMETRY"] = "1"

const graphThread = startGraphThread()
const opener = import("../engine/encoder/open-encoder.ts")
let embedder: Promise<Pick<EmbedEngine, "embed">> | undefined

servePeer<LibraryService<NodeModel>>({
  ...libraryHandlers(async ({ model, ...options }: NodeModel) => {
    const { openEncoder } = await opener
    return await openEncoder({ modelFile: fileOf(model), ...options }, graphThread)
  }),
  embed: async ({ inputs, dimensions = null }, signal) => {
    embedder ??= openEmbedder()
    const { embed } = await embedder
    const { vectors, inputTokens } = await embed({ inputs, dimensions }, { signal, admit: admitAny })
    return { vectors: [...vectors], inputTokens }
  },
})

function fileOf(model: string): string {
  const included = /^[\w-]+$/.test(model) ? includedModelFile(`${model}.onnx`) : null
  if (included !== null) return included
  if (existsSync(model)) return model
  const why = installAdvice(model) ?? "no such model ships and no such file is there"
  throw new Fault("unknown_model", `Cannot load ${JSON.stringify(model)}: ${why}`)
}

async function openEmbedder(): Promise<Pick<EmbedEngine, "embed">> {
  const [{ openEmbedder: open }, { minilm }] = await Promise.all([
    import("../engine/generate/embedding-model.ts"),
    import("../engine/generate/minilm.ts"),
  ])
  return await open({ modelFile: minilm.file, kind: "embedding" })
}
