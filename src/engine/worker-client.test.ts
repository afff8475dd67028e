import { once } from "node:events"
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { afterEach, describe, expect, test } from "vitest"
import { answerHttp, protocolHeader } from "../base/peer/http.ts"
import { encodeFrame } from "../base/peer/http.ts"
import { Fault } from "../contract/errors.ts"
import { predicate } from "./branch.ts"
import { engineHandlers } from "./engine-service.ts"
import {
  admitAny,
  type EngineCall,
  type GenerationEvent,
  type GenerationUsage,
  measure,
  noGenerationUsage,
} from "./engine.ts"
import { healthPath, protocolVersion, type WorkerClient, workerClient } from "./engine-client.ts"
import { plainWork } from "../../test/plain-work.ts"

const never = new AbortController().signal
const freely = (signal = never): EngineCall => ({ signal, admit: admitAny })
const work = { organizationId: "o", evidence: "e", branches: [predicate("a"), predicate("b")] }
const generation = plainWork()
const margins = Float64Array.of(0.1 + 0.2, -5e-324)

let server: Server | undefined
afterEach(async () => {
  server?.closeAllConnections()
  await new Promise((resolve) => (server ? server.close(resolve) : resolve(null)))
  server = undefined
})

type Answer = (request: IncomingMessage, response: ServerResponse) => unknown

async function workerThat(answer: Answer, key: string | undefined = "secret"): Promise<WorkerClient> {
  server = createServer((request, response) => void answer(request, response))
  await once(server.listen(0, "127.0.0.1"), "listening")
  const { port } = server.address() as AddressInfo
  return workerClient({ url: `http://127.0.0.1:${port}`, model: "m", key })
}

/** A worker that scores and writes, and stops in the middle when asked to. */
function serving(events: AsyncIterable<GenerationEvent> = words("x", "y"), runs: unknown[] = []): Answer {
  const usage = { ...noGenerationUsage, outputTokens: 2 }
  const handlers = engineHandlers((model) => {
    if (model !== "m") throw new Fault("inference_failed", "no such model")
    return {
      scorer: {
        score: async (_, { admit }) => {
          await admit(9).catch((error: unknown) => {
            runs.push("refused")
            throw error
          })
          runs.push("score")
          return { margins, inputTokens: 9 }
        },
      },
      generator: {
        async *generate(_, { admit, onUsage }) {
          runs.push(await admit({ inputTokensMost: 3, outputTokensMost: 4 }))
          onUsage(usage)
          yield* events
        },
      },
    }
  })
  return (request, response) =>
    answerHttp(handlers, { key: "secret", protocol: protocolVersion }, { request, response }).catch(() =>
      response.destroy(),
    )
}

async function* words(...given: readonly (string | Error)[]): AsyncGenerator<GenerationEvent> {
  for (const word of given) {
    if (word instanceof Error) throw word
    yield { kind: "text", text: word, logprobs: null }
    // So that events are not gathered into one.
    await new Promise((resolve) => setTimeout(resolve, 25))
  }
}

async function read(client: WorkerClient): Promise<{ text: string; outputTokens: number; error: unknown }> {
  let text = ""
  let outputTokens = 0
  const end = (error: unknown) => ({ text, outputTokens, error })
  const call = {
    signal: never,
    admit: async () => 4,
    onUsage: (used: GenerationUsage) => void (outputTokens = used.outputTokens),
  }
  try {
    for await (const event of client.generator.generate(generation, call))
      if (event.kind === "text") text += event.text
    return end(null)
  } catch (error) {
    return end(error)
  }
}

test("a score comes back as it was computed; what is not admitted is not run", async () => {
  const runs: unknown[] = []
  const client = await workerThat(serving(undefined, runs))
  const size = await measure<number>(
    async (admit) => await client.scorer.score(work, { signal: never, admit }),
  )
  expect(size).toBe(9)
  await expect.poll(() => runs).toEqual(["refused"])
  expect(await client.scorer.score(work, freely())).toEqual({ margins, inputTokens: 9 })
  // Its size was asked in a request of its own.
  expect(runs).toEqual(["refused", "refused", "score"])
})

test("a generation comes event by event, with the limit that it was run with and what was used", async () => {
  const runs: unknown[] = []
  const client = await workerThat(serving(undefined, runs))
  expect(await read(client)).toEqual({ text: "xy", outputTokens: 2, error: null })
  expect(runs).toEqual([4])
})

test("a generation that fails at the worker fails with its words, after what came before", async () => {
  const failure = new Fault("overloaded", "Cannot go on", { retryAfterMs: 1234 })
  const client = await workerThat(serving(words("x", failure)))
  const error = { code: "overloaded", message: "Cannot go on", retryAfterMs: 1234 }
  expect(await read(client)).toMatchObject({ text: "x", outputTokens: 2, error })
})

test("another key is the worker's failure, not a mistake in the caller's credentials", async () => {
  const client = await workerThat(serving(), "other")
  await expect(client.scorer.score(work, freely())).rejects.toMatchObject({
    code: "inference_failed",
    message: expect.stringContaining("key"),
  })
})

describe("an answer that is not a worker's", () => {
  const whole = encodeFrame({ kind: "item", item: 9 })
  const changed = Buffer.from(whole)
  changed.writeUInt8(changed.readUInt8(changed.length - 1) ^ 1, changed.length - 1)
  const cases: [string, Answer, string][] = [
    ["an error page", (_, response) => response.writeHead(404).end("<html>"), "inference_failed"],
    ["a broken connection", (_, response) => response.destroy(), "inference_failed"],
    ["a changed byte", (_, response) => said(response).end(changed), "invalid_worker_response"],
    ["half of it", (_, response) => said(response).end(whole.subarray(0, -1)), "invalid_worker_response"],
    ["nothing", (_, response) => said(response).end(), "invalid_worker_response"],
    ["garbage", (_, response) => said(response).end("garbage ".repeat(20)), "invalid_worker_response"],
    ["something else", (_, response) => said(response).end(encodeFrame(7)), "invalid_worker_response"],
  ]
  test.each(cases)("%s is not used", async (_name, answer, code) => {
    const client = await workerThat(answer)
    await expect(client.scorer.score(work, freely())).rejects.toMatchObject({ name: "Fault", code })
  })
})

test("a caller that leaves ends its request with its own reason", async () => {
  const gone = new AbortController()
  const client = await workerThat(() => gone.abort(new Error("left")))
  await expect(client.scorer.score(work, freely(gone.signal))).rejects.toThrow("left")
})

test.each([["2"], [undefined]])(
  "a worker that speaks version %s is not used and fails its check",
  async (version) => {
    const client = await workerThat((_, response) => {
      if (version !== undefined) response.setHeader(protocolHeader, version)
      response.end(encodeFrame({ kind: "item", item: 9 }))
    })
    await expect(client.scorer.score(work, freely())).rejects.toMatchObject({
      code: "invalid_worker_response",
      message: expect.stringMatching(/version .* of the worker protocol/),
    })
    await expect(client.check(never)).rejects.toThrow(/worker protocol/)
  },
)

test("a gateway of another version hears it from the worker", async () => {
  const answer = serving()
  const client = await workerThat((request, response) => {
    request.headers[protocolHeader] = "2"
    return answer(request, response)
  })
  await expect(client.scorer.score(work, freely())).rejects.toThrow(/version 2 of the worker protocol/)
})

test.each([
  [200, true],
  [503, false],
])("a health check that is answered %i passes: %s", async (status, passes) => {
  const client = await workerThat((request, response) =>
    said(response)
      .writeHead(request.url === healthPath ? status : 500)
      .end("{}"),
  )
  const check = client.check(never)
  await (passes ? expect(check).resolves.toBeUndefined() : expect(check).rejects.toThrow("503"))
})

const said = (response: ServerResponse): ServerResponse => response.setHeader(protocolHeader, protocolVersion)
