/** The proxy path: one upstream, asked directly, through a plain node:http pass-through, Portkey's gateway and Umpire. */
import { type ChildProcess, spawn } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { createServer, request as httpRequest } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Agent, request } from "undici"
import { startServer } from "../test/server.ts"

const requests = Number(process.env["UMPIRE_BENCH_REQUESTS"] ?? 2000)
const rounds = Number(process.env["UMPIRE_BENCH_ROUNDS"] ?? 3)
const concurrency = 16
const portkeyPort = 18_787
const gateway = join(
  import.meta.dirname,
  "..",
  "node_modules",
  "@portkey-ai",
  "gateway",
  "build",
  "start-server.js",
)

const chunk = (delta: unknown, finish: string | null, usage: unknown): string =>
  `data: ${JSON.stringify({ id: "x", object: "chat.completion.chunk", created: 1, model: "m", choices: [{ index: 0, delta, finish_reason: finish }], usage })}\n\n`
const streamed = `${chunk({ content: "Hello" }, null, null)}${chunk({}, "stop", { prompt_tokens: 9, completion_tokens: 1, total_tokens: 10 })}data: [DONE]\n\n`
const whole = JSON.stringify({
  id: "x",
  object: "chat.completion",
  created: 1,
  model: "m",
  choices: [{ index: 0, message: { role: "assistant", content: "Hello" }, finish_reason: "stop" }],
  usage: { prompt_tokens: 9, completion_tokens: 1, total_tokens: 10 },
})

const upstream = createServer((message, response) => {
  let body = ""
  message.setEncoding("utf8").on("data", (text: string) => (body += text))
  message.on("end", () => {
    const stream = body.includes('"stream":true')
    response.writeHead(200, { "content-type": stream ? "text/event-stream" : "application/json" })
    response.end(stream ? streamed : whole)
  })
})
const plain = createServer((message, response) => {
  const { port } = upstream.address() as AddressInfo
  const forward = httpRequest(
    { port, path: message.url, method: message.method, headers: message.headers },
    (answer) => {
      response.writeHead(answer.statusCode ?? 500, answer.headers)
      answer.pipe(response)
    },
  )
  message.pipe(forward)
})
for (const server of [upstream, plain])
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
const portOf = (server: typeof upstream): number => (server.address() as AddressInfo).port
const upstreamUrl = `http://127.0.0.1:${portOf(upstream)}`

const directory = mkdtempSync(join(tmpdir(), "umpire-bench-"))
const config = join(directory, "umpire.json")
const far = { sku: "m", context_tokens_max: 4096, workers: [{ url: upstreamUrl, dialect: "openai" }] }
writeFileSync(
  config,
  JSON.stringify({ models: [far], limits: { requests_per_minute: 10_000_000, burst: 10_000_000 } }),
)
const umpire = await startServer({ env: { UMPIRE_CONFIG: config, UMPIRE_ENGINE_THREADS: "1" } })
const portkey: ChildProcess = spawn(process.execPath, [gateway, "--headless", `--port=${portkeyPort}`], {
  stdio: "ignore",
})

interface Way {
  readonly url: string
  readonly headers: Record<string, string>
}

const ways: Readonly<Record<string, Way>> = {
  direct: { url: upstreamUrl, headers: {} },
  "node:http pass-through": { url: `http://127.0.0.1:${portOf(plain)}`, headers: {} },
  "Portkey gateway": {
    url: `http://127.0.0.1:${portkeyPort}`,
    headers: {
      "x-portkey-provider": "openai",
      "x-portkey-custom-host": `${upstreamUrl}/v1`,
      authorization: "Bearer x",
    },
  },
  Umpire: { url: umpire.url, headers: { authorization: `Bearer ${umpire.key}` } },
}

const agent = new Agent({ connections: concurrency, pipelining: 1 })
const body = JSON.stringify({ model: "m", messages: [{ role: "user", content: "Say hello." }] })

async function once({ url, headers }: Way): Promise<number> {
  const startedMs = performance.now()
  const answer = await request(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body,
    dispatcher: agent,
  })
  const text = await answer.body.text()
  if (answer.statusCode !== 200)
    throw new Error(`${url} answered ${answer.statusCode}: ${text.slice(0, 200)}`)
  return performance.now() - startedMs
}

async function load(way: Way, count: number): Promise<{ seconds: number; latencies: number[] }> {
  const latencies: number[] = []
  let left = count
  const startedMs = performance.now()
  const client = async (): Promise<void> => {
    while (left-- > 0) latencies.push(await once(way))
  }
  await Promise.all(Array.from({ length: concurrency }, client))
  return { seconds: (performance.now() - startedMs) / 1000, latencies }
}

async function untilUp(way: Way): Promise<void> {
  for (let attempt = 0; attempt < 100; attempt++) {
    try {
      await once(way)
      return
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 200))
    }
  }
  await once(way)
}

const at = (sorted: readonly number[], share: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? NaN

const results = new Map<string, { seconds: number; latencies: number[] }>()
for (const way of Object.values(ways)) {
  await untilUp(way)
  await load(way, requests / 4)
}
for (let round = 0; round < rounds; round++)
  for (const [name, way] of Object.entries(ways)) {
    const { seconds, latencies } = await load(way, requests)
    const before = results.get(name) ?? { seconds: 0, latencies: [] }
    results.set(name, { seconds: before.seconds + seconds, latencies: [...before.latencies, ...latencies] })
  }
const base = (results.get("direct")?.latencies ?? []).toSorted((a, b) => a - b)
console.log(
  `${requests * rounds} unstreamed requests each, ${concurrency} at a time, interleaved in ${rounds} rounds`,
)
console.table(
  Object.fromEntries(
    [...results].map(([name, { seconds, latencies }]) => {
      const sorted = latencies.toSorted((a, b) => a - b)
      return [
        name,
        {
          "requests/s": Math.round(latencies.length / seconds),
          "p50 ms": at(sorted, 0.5).toFixed(2),
          "p99 ms": at(sorted, 0.99).toFixed(2),
          "added p50 ms": (at(sorted, 0.5) - at(base, 0.5)).toFixed(2),
          "added p99 ms": (at(sorted, 0.99) - at(base, 0.99)).toFixed(2),
        },
      ]
    }),
  ),
)
const speed = (name: string): number =>
  (results.get(name)?.latencies.length ?? 0) / (results.get(name)?.seconds ?? 1)
console.log(`Umpire / Portkey: ${(speed("Umpire") / speed("Portkey gateway")).toFixed(2)}x`)
await umpire.stop()
portkey.kill()
await agent.close()
for (const server of [upstream, plain]) server.closeAllConnections()
for (const server of [upstream, plain]) server.close()
rmSync(directory, { recursive: true })
