/**
 * What guardrails add to a chat completion: `node bench/guardrails.ts [REQUESTS]`. The model behind them is a script that answers 1200
 * characters at once, so that what is measured is the server and its checks. Every text is new: no verdict is remembered.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { type ServerResponse, createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { drawTable } from "../src/cli/table.ts"
import { createClient } from "../src/contract/client.ts"
import { readyMadeSets } from "../src/contract/guardrails/guardrails.ts"
import { type TestServer, startServer } from "../test/server.ts"

const requests = Number(process.argv[2] ?? 20)
const answerCharacters = 1200
const pieceCharacters = 40
let turn = 0

const worker = createServer((request, response) => {
  request.resume()
  request.on("end", () => answer(response))
})
await new Promise<void>((resolve) => worker.listen(0, "127.0.0.1", resolve))
const folder = mkdtempSync(join(tmpdir(), "umpire-guardrails-"))
const url = `http://127.0.0.1:${(worker.address() as AddressInfo).port}/v1`
const models = [{ sku: "writer", context_tokens_max: 8192, workers: [{ url, dialect: "openai" }] }]
writeFileSync(join(folder, "umpire.yaml"), JSON.stringify({ models }))
const server = await startServer({ env: { UMPIRE_CONFIG: join(folder, "umpire.yaml") } })
try {
  console.log(drawTable(["guardrail", "first text, ms", "whole answer, ms"], await measure(server)))
} finally {
  await server.stop()
  worker.closeAllConnections()
  worker.close()
  rmSync(folder, { recursive: true, force: true })
}

async function measure({ url: address, key }: TestServer): Promise<string[][]> {
  const client = createClient(address, { authorization: `Bearer ${key}` })
  const org_id = (await client.listOrganizations())[0]?.id ?? ""
  const [made] = readyMadeSets
  if (!made) throw new Error("there is no ready-made set")
  const { measured: _, ...set } = made
  // A bias keeps it from acting, so that every window of every answer is checked.
  const questions = set.questions.map((one) => ({ ...one, calibration: { temperature: 100, bias: -100 } }))
  await client.createQuestionSet({ params: { org_id }, body: { ...set, questions } })
  const lines: string[][] = []
  const variants = [
    ["none", null],
    ["input, 200 characters", { stage: "input" }],
    ["output, by window", { stage: "output" }],
    ["output, at the end", { stage: "output", release: "end" }],
    ["output, flag", { stage: "output", action: "flag" }],
  ] as const
  for (const [name, settings] of variants) {
    const body = { name: "g", question_set: set.name, ...settings }
    const guardrail = settings ? await client.createGuardrail({ params: { org_id }, body }) : null
    const times: Times[] = []
    for (let request = 0; request < requests; request++) times.push(await ask(address, key))
    const median = (of: keyof Times): string =>
      (times.map((one) => one[of]).toSorted((a, b) => a - b)[Math.floor(times.length / 2)] ?? 0).toFixed(1)
    lines.push([name, median("firstMs"), median("wholeMs")])
    if (guardrail) await client.deleteGuardrail({ params: { org_id, guardrail_id: guardrail.id } })
  }
  return lines
}

interface Times {
  readonly firstMs: number
  readonly wholeMs: number
}

async function ask(address: string, key: string): Promise<Times> {
  const content = `Request ${turn++}. ${"Please tell me about the town and its harbour. ".repeat(4)}`
  const startedMs = performance.now()
  const response = await fetch(`${address}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "writer", stream: true, messages: [{ role: "user", content }] }),
  })
  let firstMs = Number.NaN
  let text = ""
  const decoder = new TextDecoder()
  for await (const bytes of response.body ?? []) {
    text += decoder.decode(bytes, { stream: true })
    if (Number.isNaN(firstMs) && /"content":"[^"]/.test(text)) firstMs = performance.now() - startedMs
  }
  if (!text.includes('"finish_reason":"stop"'))
    throw new Error(`The answer is not whole: ${text.slice(0, 300)}`)
  return { firstMs, wholeMs: performance.now() - startedMs }
}

function answer(response: ServerResponse): void {
  const own = turn++
  // Each sentence is new, so that each window is.
  const sentences = Array.from(
    { length: 40 },
    (_, at) => `Boat ${own}-${at} is blue and lies in the harbour. `,
  )
  const text = sentences.join("").slice(0, answerCharacters)
  response.writeHead(200, { "content-type": "text/event-stream" })
  for (let at = 0; at < text.length; at += pieceCharacters)
    response.write(
      chunk({ index: 0, delta: { content: text.slice(at, at + pieceCharacters) }, finish_reason: null }),
    )
  response.end(`${chunk({ index: 0, delta: {}, finish_reason: "stop" })}data: [DONE]\n\n`)
}

function chunk(choice: object): string {
  const facts = { id: "x", object: "chat.completion.chunk", created: 1, model: "m" }
  return `data: ${JSON.stringify({ ...facts, choices: [choice] })}\n\n`
}
