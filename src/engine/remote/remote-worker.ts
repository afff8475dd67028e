/** Everything a worker at another address can do for a model, by its dialect. */
import { objectOf } from "../../base/json.ts"
import { type EmbedEngine, type GenerateEngine, normalised } from "../engine.ts"
import { type Decider, remoteDecider } from "./decider.ts"
import { type DialectName, dialects } from "./dialects.ts"
import type { RemoteScoredModel } from "./remote-scorer.ts"
import { remoteGenerator, type RemoteModel } from "./remote-generator.ts"
import { HttpClient, type RemoteAddress, type HttpTimeouts, garbage } from "./http-client.ts"

export interface RemoteWorker {
  readonly scorer: Decider
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
  const client = new HttpClient(address, { times, ...(dialect.signIn ? { signIn: dialect.signIn } : {}) })
  return {
    scorer: remoteDecider(client, dialect, model),
    generator: remoteGenerator(client, dialect, model),
    embedder: remoteEmbedder(client, model),
    check: async (signal) => await client.check(dialect.health, signal),
    close: async () => await client.close(),
  }
}

/** Around each input a tokenizer writes a few tokens of its own. */
const TOKENS_PER_INPUT = 8

function remoteEmbedder(client: HttpClient, model: RemoteModel): EmbedEngine {
  return {
    embed: async ({ inputs, dimensions }, { admit, signal }) => {
      // A token has at least one byte; the worker's own count takes its place when it has answered.
      const most = inputs.reduce(
        (sum, input) =>
          sum + TOKENS_PER_INPUT + (typeof input === "string" ? Buffer.byteLength(input) : input.length),
        0,
      )
      await admit(most)
      const body = {
        model: model.name,
        input: inputs,
        encoding_format: "float",
        ...(dimensions === null ? {} : { dimensions }),
      }
      const answer = await client.json("/v1/embeddings", body, signal)
      const { vectors, inputTokens } = read(answer, inputs.length)
      return { vectors, inputTokens: Math.min(inputTokens, most) }
    },
    close: async () => await client.close(),
  }
}

function read(answer: unknown, expected: number): { vectors: Float32Array[]; inputTokens: number } {
  const { data, usage } = objectOf(answer)
  if (!Array.isArray(data) || data.length !== expected) throw garbage("it has not one vector per input")
  const rows: { index?: unknown; embedding?: unknown }[] = data
  const vectors = rows
    .toSorted((a, b) => Number(a.index ?? 0) - Number(b.index ?? 0))
    .map(({ embedding }) => {
      if (!Array.isArray(embedding) || !embedding.every((value) => typeof value === "number"))
        throw garbage("a vector is not a list of numbers")
      return normalised(embedding)
    })
  const { prompt_tokens: inputTokens } = objectOf(usage)
  if (typeof inputTokens !== "number") throw garbage("it does not say how many tokens it read")
  return { vectors, inputTokens }
}
