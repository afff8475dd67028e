/** A server for agents: one model is a scripted provider that calls tools and writes sentences. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { type TestServer, startServer } from "./server.ts"
import { type Upstream, type UpstreamAnswer, type UpstreamRequest, startUpstream } from "./upstream.ts"

export interface AgentsScene {
  readonly server: TestServer
  readonly upstream: Upstream
  /** An empty folder for agents to work in. */
  readonly directory: string
  close(): Promise<void>
}

/** The scripted provider's model is called `far`, or is each of `own`; `models` are others. */
export async function openAgentsScene(
  answer: (request: UpstreamRequest) => UpstreamAnswer,
  models: readonly object[] = [],
  own: readonly object[] = [{ sku: "far" }],
): Promise<AgentsScene> {
  const upstream = await startUpstream(answer)
  const directory = mkdtempSync(join(tmpdir(), "umpire-agents-"))
  const file = join(directory, "umpire.yaml")
  const workers = [{ url: upstream.url, dialect: "openai" }]
  const far = own.map((model) => ({ ...model, context_tokens_max: 262_144, workers }))
  writeFileSync(file, JSON.stringify({ models: [...far, ...models] }))
  const server = await startServer({
    env: { UMPIRE_CONFIG: file },
  })
  return {
    server,
    upstream,
    directory,
    close: async () => {
      await server.stop()
      await upstream.close()
      rmSync(directory, { recursive: true })
    },
  }
}

/** Whether the conversation ends with the result of a call: then it is time to answer. */
export const hasResult = ({ messages }: UpstreamRequest): boolean => messages.at(-1)?.role === "tool"
