/** Everything a worker at another address can do for a model, by its dialect. */
import type { EmbedEngine, GenerateEngine, ScoreEngine } from "../engine.ts"
import { type DialectName, dialects } from "./dialects.ts"
import { remoteEmbedder } from "./remote-embedder.ts"
import { type RemoteScoredModel, remoteScorer } from "./remote-scorer.ts"
import { remoteGenerator } from "./remote-generator.ts"
import { systemOneScorer } from "./systemone-scorer.ts"
import { HttpClient, type RemoteAddress, type HttpTimeouts } from "./http-client.ts"

export interface RemoteWorker {
  readonly scorer: ScoreEngine
  readonly generator: GenerateEngine
  readonly embedder: EmbedEngine
  readonly check: (signal: AbortSignal) => Promise<void>
  close(): Promise<void>
}

export function openRemoteWorker(
  address: RemoteAddress,
  dialectName: DialectName,
  {
    model,
    times = {},
  }: { readonly model: RemoteScoredModel; readonly times?: Partial<HttpTimeouts> | undefined },
): RemoteWorker {
  const dialect = dialects[dialectName]
  const client = new HttpClient(address, times)
  return {
    scorer:
      dialectName === "systemone" ? systemOneScorer(client, model) : remoteScorer(client, dialect, model),
    generator: remoteGenerator(client, dialect, model),
    embedder: remoteEmbedder(client, model),
    check: async (signal) => await client.check(dialect.health, signal),
    close: async () => await client.close(),
  }
}
