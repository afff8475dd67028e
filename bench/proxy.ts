/**
 * The proxy path: one upstream, asked directly, through a plain node:http pass-through, Portkey's gateway and Umpire.
 *
 * node bench/proxy.ts [--seconds=2] [--rounds=4] [--connections=16]
 *
 * Each of them is a process of its own and this one is the load. Rounds take turns. "Added" is what one request at a time
 * takes longer than when the upstream is asked directly.
 */
import { type ChildProcess, fork, spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { createServer, request as httpRequest, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as wait } from "node:timers/promises"
import { parseArgs } from "node:util"
import { type TestServer, startServer } from "../test/server.ts"
import { testPackage } from "../test/test-packages.ts"
import { Connection, type Measured, at, load, median, requestBytes } from "./keep-alive.ts"

const { values } = parseArgs({
  options: {
    seconds: { type: "string", default: "2" },
    rounds: { type: "string", default: "4" },
    connections: { type: "string", default: "16" },
    /** What a child of this process is. */
    role: { type: "string" },
    upstream: { type: "string", default: "" },
    /** A folder for a profile of Umpire's processor time. */
    profile: { type: "string" },
  },
})
const [roundMs, rounds, connections] = [
  Number(values.seconds) * 1000,
  Number(values.rounds),
  Number(values.connections),
]
const portkeyPort = 18_787
const startAttemptsMax = 100

const chunk = (delta: unknown, finish: string | null, usage: unknown): string =>
  `data: ${JSON.stringify({ id: "x", object: "chat.completion.chunk", created: 1, model: "m", choices: [{ index: 0, delta, finish_reason: finish }], usage })}\n\n`
const usage = { prompt_tokens: 9, completion_tokens: 1, total_tokens: 10 }
const streamed = `${chunk({ content: "Hello" }, null, null)}${chunk({}, "stop", usage)}data: [DONE]\n\n`
const whole = JSON.stringify({
  id: "x",
  object: "chat.completion",
  created: 1,
  model: "m",
  choices: [{ index: 0, message: { role: "assistant", content: "Hello" }, finish_reason: "stop" }],
  usage,
})

const upstream = (): Server =>
  createServer((message, response) => {
    let body = ""
    message.setEncoding("utf8").on("data", (text: string) => (body += text))
    message.on("end", () => {
      const stream = body.includes('"stream":true')
      response.writeHead(200, { "content-type": stream ? "text/event-stream" : "application/json" })
      response.end(stream ? streamed : whole)
    })
  })

const passThrough = ({ hostname, port }: URL): Server =>
  createServer((message, response) => {
    const { url, method, headers } = message
    const forward = httpRequest({ hostname, port, path: url, method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 500, answer.headers)
      answer.pipe(response)
    })
    message.pipe(forward)
  })

/** Tells the parent its address, and ends with it. */
async function serve(server: Server): Promise<void> {
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  // A server that listens on a port has an address with a port.
  process.send?.(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  process.once("disconnect", () => process.exit(0))
}

async function startChild(...args: readonly string[]): Promise<{ child: ChildProcess; url: string }> {
  const child = fork(import.meta.filename, args)
  // `serve` sends its address and nothing else.
  const [url] = (await once(child, "message")) as [string]
  return { child, url }
}

interface Way {
  readonly name: string
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
}

async function startUmpire(upstreamUrl: string, directory: string): Promise<TestServer> {
  const config = join(directory, "umpire.json")
  const far = { sku: "m", context_tokens_max: 4096, workers: [{ url: upstreamUrl, dialect: "openai" }] }
  const limits = { requests_per_minute: 10_000_000, burst: 10_000_000 }
  writeFileSync(config, JSON.stringify({ models: [far], limits }))
  const { profile } = values
  const profiled = profile === undefined ? {} : { NODE_OPTIONS: `--cpu-prof --cpu-prof-dir=${profile}` }
  return await startServer({ env: { UMPIRE_CONFIG: config, ...profiled } })
}

const bodyOf = (stream: boolean): string =>
  JSON.stringify({
    model: "m",
    messages: [{ role: "user", content: "Say hello." }],
    ...(stream ? { stream: true } : {}),
  })

const requestOf = ({ headers }: Way, stream: boolean): Buffer =>
  requestBytes("/v1/chat/completions", headers, bodyOf(stream))

async function untilUp(way: Way): Promise<void> {
  for (let attempt = 1; ; attempt++)
    try {
      const connection = await Connection.open(way.url)
      const status = await connection.ask(requestOf(way, false))
      connection.close()
      if (status === 200) return
      throw new Error(`${way.name} answered ${status}`)
    } catch (error) {
      if (attempt >= startAttemptsMax) throw error
      await wait(200)
    }
}

async function compare(given: readonly Way[], stream: boolean): Promise<void> {
  const ways: Way[] = []
  const busy = new Map(
    given.map(({ name }): [string, Measured] => [name, { perSecond: [], latenciesMs: [] }]),
  )
  const quiet = new Map(given.map(({ name }): [string, number[]] => [name, []]))
  for (const way of given) {
    const failed = await load(way.url, requestOf(way, stream), connections, roundMs).catch(
      (error: unknown) => error,
    )
    if (failed instanceof Error) console.log(`${way.name} is left out: ${failed.message}`)
    else ways.push(way)
  }
  for (let round = 0; round < rounds; round++)
    for (const way of round % 2 === 0 ? ways : ways.toReversed()) {
      const { perSecond, latenciesMs } = await load(way.url, requestOf(way, stream), connections, roundMs)
      busy.get(way.name)?.perSecond.push(...perSecond)
      busy.get(way.name)?.latenciesMs.push(...latenciesMs)
      const alone = await load(way.url, requestOf(way, stream), 1, roundMs / 2)
      quiet.get(way.name)?.push(...alone.latenciesMs)
    }
  const base = quiet.get("direct") ?? []
  console.log(
    `\n${stream ? "streamed" : "unstreamed"}: ${rounds} rounds of ${values.seconds} s, taking turns; ${connections} connections, then one`,
  )
  console.table(
    Object.fromEntries(
      ways.map(({ name }) => {
        const many = busy.get(name) ?? { perSecond: [], latenciesMs: [] }
        const one = quiet.get(name) ?? []
        return [
          name,
          {
            "requests/s": Math.round(median(many.perSecond)),
            "p50 ms": at(many.latenciesMs, 0.5).toFixed(2),
            "p99 ms": at(many.latenciesMs, 0.99).toFixed(2),
            "added p50 ms, one": (at(one, 0.5) - at(base, 0.5)).toFixed(2),
            "added p99 ms, one": (at(one, 0.99) - at(base, 0.99)).toFixed(2),
          },
        ]
      }),
    ),
  )
  const speed = (name: string): number => median(busy.get(name)?.perSecond ?? [])
  const times = speed("Umpire") / speed("Portkey gateway")
  if (Number.isFinite(times)) console.log(`Umpire / Portkey: ${times.toFixed(2)}x requests a second`)
}

async function main(): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), "umpire-bench-"))
  const far = await startChild("--role=upstream")
  const plain = await startChild("--role=pass-through", `--upstream=${far.url}`)
  const umpire = await startUmpire(far.url, directory)
  const portkeyStart = join(await testPackage("@portkey-ai/gateway", "1.15.2"), "build", "start-server.js")
  const portkey = spawn(process.execPath, [portkeyStart, "--headless", `--port=${portkeyPort}`], {
    stdio: "ignore",
  })
  const ways: Way[] = [
    { name: "direct", url: new URL(far.url), headers: {} },
    { name: "node:http pass-through", url: new URL(plain.url), headers: {} },
    {
      name: "Portkey gateway",
      url: new URL(`http://127.0.0.1:${portkeyPort}`),
      headers: {
        "x-portkey-provider": "openai",
        "x-portkey-custom-host": `${far.url}/v1`,
        authorization: "Bearer x",
      },
    },
    { name: "Umpire", url: new URL(umpire.url), headers: { authorization: `Bearer ${umpire.key}` } },
  ]
  try {
    for (const way of ways) await untilUp(way)
    await compare(ways, false)
    await compare(ways, true)
  } finally {
    await umpire.stop()
    portkey.kill()
    far.child.disconnect()
    plain.child.disconnect()
    rmSync(directory, { recursive: true })
  }
}

if (values.role === "upstream") await serve(upstream())
else if (values.role === "pass-through") await serve(passThrough(new URL(values.upstream)))
else await main()
