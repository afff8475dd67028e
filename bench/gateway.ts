/**
 * What the gateway itself costs: decisions against an engine that answers at once, through the whole product (keys, meter,
 * journal, analytics), beside Fastify alone and plain node:http that read the same JSON and answer the same JSON.
 *
 * node bench/gateway.ts [--seconds=2] [--rounds=6] [--connections=16]
 *
 * Each server is a process of its own and this one is the load, over raw keep-alive connections, so that the client costs
 * the same whomever it asks. Rounds take turns. "Added" is what a client waits with one request at a time: the engine
 * takes no time, so all of it is the server's (and the loopback's, which plain node:http shows).
 */
import { type ChildProcess, fork } from "node:child_process"
import { once } from "node:events"
import { connect } from "node:net"
import { join } from "node:path"
import { setTimeout as wait } from "node:timers/promises"
import { parseArgs } from "node:util"
import { bootstrapKey } from "../test/server.ts"
import type { ServerQuestion, ServerReport } from "./gateway-server.ts"
import { Connection, type Measured, at, load, median, requestBytes } from "./keep-alive.ts"

const { values } = parseArgs({
  options: {
    seconds: { type: "string", default: "2" },
    rounds: { type: "string", default: "6" },
    connections: { type: "string", default: "16" },
    /** One server only, with a profile of its processor time in this folder. */
    profile: { type: "string" },
  },
})
const [roundMs, rounds, connections] = [
  Number(values.seconds) * 1000,
  Number(values.rounds),
  Number(values.connections),
]
/** Until everything is compiled that will be. */
const warmUpMs = 5_000
/** Until ledger and analytics have what came before: one request at a time is measured with its own usage behind it. */
const settleMs = 1_500
const idleConnections = 1_000
const kibibyte = 1024
const mebibyte = 1024 * kibibyte

interface Server {
  readonly name: string
  readonly url: URL
  readonly child: ChildProcess
}

async function start(name: string, kind: string): Promise<Server> {
  const profile =
    values.profile === undefined
      ? []
      : ["--cpu-prof", "--cpu-prof-interval=250", `--cpu-prof-dir=${values.profile}`]
  const child = fork(join(import.meta.dirname, "gateway-server.ts"), [kind], {
    execArgv: ["--expose-gc", ...profile],
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  })
  // The first thing that a server tells is its address.
  const [{ url }] = (await once(child, "message")) as [ServerReport]
  return { name, url: new URL(url ?? ""), child }
}

async function ask({ child }: Server, question: ServerQuestion): Promise<ServerReport> {
  child.send(question)
  // Servers speak only when asked.
  const [report] = (await once(child, "message")) as [ServerReport]
  return report
}

const headers = { authorization: `Bearer ${bootstrapKey}` }
const decision = requestBytes(
  "/v1/decisions",
  headers,
  JSON.stringify({
    model: "umpire-decide",
    input: "The parcel arrived two weeks late and the box was crushed. I want my money back.",
    questions: [{ type: "predicate", instructions: "Does the customer ask for a refund?" }],
  }),
)

const microseconds = (ms: number): string => (ms * 1000).toFixed(0)

/** Many at once for how much it can do, one at a time for what a client waits. */
async function compare(servers: readonly Server[]): Promise<void> {
  const busy = new Map<Server, Measured>()
  const quiet = new Map<Server, Measured>()
  const add = (to: Map<Server, Measured>, server: Server, { perSecond, latenciesMs }: Measured): void => {
    const known = to.get(server) ?? { perSecond: [], latenciesMs: [] }
    known.perSecond.push(...perSecond)
    for (const latency of latenciesMs) known.latenciesMs.push(latency)
    to.set(server, known)
  }
  for (const server of servers) await load(server.url, decision, connections, warmUpMs)
  for (let round = 0; round < rounds; round++)
    for (const server of round % 2 === 0 ? servers : servers.toReversed()) {
      add(busy, server, await load(server.url, decision, connections, roundMs))
      await wait(settleMs)
      add(quiet, server, await load(server.url, decision, 1, roundMs))
    }
  const plain = servers.find(({ name }) => name === "plain node:http")
  const of = (map: Map<Server, Measured>, server: Server | undefined): Measured =>
    (server && map.get(server)) ?? { perSecond: [], latenciesMs: [] }
  const [base, baseBusy] = [of(quiet, plain), of(busy, plain)]
  console.log(`${rounds} rounds of ${values.seconds} s, taking turns; ${connections} connections, then one\n`)
  console.table(
    Object.fromEntries(
      servers.map((server) => {
        const [one, many] = [of(quiet, server), of(busy, server)]
        return [
          server.name,
          {
            "requests/s": Math.round(median(many.perSecond)),
            "of node:http's": (median(many.perSecond) / median(baseBusy.perSecond)).toFixed(2),
            "p50 ms, many": at(many.latenciesMs, 0.5).toFixed(2),
            "p99 ms, many": at(many.latenciesMs, 0.99).toFixed(2),
            "added p50 us, one": microseconds(at(one.latenciesMs, 0.5)),
            "added p99 us, one": microseconds(at(one.latenciesMs, 0.99)),
            "p50 x node:http": (at(one.latenciesMs, 0.5) / at(base.latenciesMs, 0.5)).toFixed(2),
            "p99 x node:http": (at(one.latenciesMs, 0.99) / at(base.latenciesMs, 0.99)).toFixed(2),
          },
        ]
      }),
    ),
  )
}

/** What a server holds for connections that are open and say nothing, each after one request. */
async function idleMemory(server: Server, openOne: (server: Server) => Promise<() => void>): Promise<string> {
  // The first hundred also pay for what is made once.
  const closers: (() => void)[] = []
  for (let count = 0; count < idleConnections / 10; count++) closers.push(await openOne(server))
  const before = await ask(server, "memory")
  for (let count = 0; count < idleConnections; count++) closers.push(await openOne(server))
  const after = await ask(server, "memory")
  for (const close of closers) close()
  const grown = (field: "rssBytes" | "heapBytes"): string =>
    (((after[field] ?? 0) - (before[field] ?? 0)) / mebibyte).toFixed(1)
  return `${grown("heapBytes")} (resident ${grown("rssBytes")})`
}

async function openHttp(server: Server): Promise<() => void> {
  const connection = await Connection.open(server.url)
  await connection.ask(decision)
  return () => connection.close()
}

async function openWebSocket({ name, url }: Server): Promise<() => void> {
  const socket = connect(Number(url.port), url.hostname)
  await once(socket, "connect")
  socket.write(
    `GET /v1/responses HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${bootstrapKey}\r\n` +
      "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n",
  )
  const [head] = (await once(socket, "data")) as [Buffer]
  if (!head.toString("latin1").startsWith("HTTP/1.1 101"))
    throw new Error(`${name} does not open a WebSocket: ${head.toString("latin1").slice(0, 200)}`)
  return () => socket.destroy()
}

const systemOne = (bytes: number): Buffer =>
  requestBytes(
    "/v1/systemone",
    headers,
    `{"model":"umpire-decide","state":[${"1,".repeat(bytes / 2)}1],"questions":{"q":{"type":"noul","instructions":"Is it one?"}}}`,
  )

/** A request of millions of tiny values: how long it holds up everything else. */
async function stalls(server: Server): Promise<void> {
  const small = await Connection.open(server.url)
  const large = await Connection.open(server.url)
  const rows: Record<string, Record<string, string | number>> = {}
  for (const [name, bytes] of [
    ["8 MiB of tiny values, refused", 8 * mebibyte - 4 * kibibyte],
    ["4 MiB of tiny values, answered", 4 * mebibyte - 4 * kibibyte],
    ["200 KiB of tiny values, answered", 200 * kibibyte],
  ] as const) {
    await large.ask(systemOne(bytes))
    await ask(server, "forget-delays")
    const state = { isAnswered: false }
    const startedMs = performance.now()
    const answered = large.ask(systemOne(bytes)).then((status) => {
      state.isAnswered = true
      return status
    })
    const waits: number[] = []
    for (let sentMs = performance.now(); !state.isAnswered; sentMs = performance.now()) {
      await small.ask(decision)
      waits.push(performance.now() - sentMs)
    }
    rows[name] = {
      status: await answered,
      "answered after ms": (performance.now() - startedMs).toFixed(0),
      "longest stall of the loop ms": ((await ask(server, "longest-delay")).longestDelayMs ?? 0).toFixed(0),
      "others answered meanwhile": waits.length,
      "longest wait of another ms": Math.max(...waits).toFixed(0),
    }
  }
  small.close()
  large.close()
  console.table(rows)
}

const umpire = await start("Umpire", "umpire")
if (values.profile === undefined) {
  const fastify = await start("Fastify alone", "fastify")
  const plain = await start("plain node:http", "plain")
  const servers = [plain, fastify, umpire]
  await compare(servers)
  console.log(`\nMiB of heap and buffers for ${idleConnections} idle connections`)
  const memory: Record<string, Record<string, string>> = {}
  for (const server of servers) {
    const keepAlive = await idleMemory(server, openHttp)
    const webSocket = server === fastify ? "" : await idleMemory(server, openWebSocket)
    memory[server.name] = { "keep-alive": keepAlive, WebSocket: webSocket }
  }
  console.table(memory)
  await stalls(umpire)
  for (const server of [fastify, plain]) server.child.send("close" satisfies ServerQuestion)
} else {
  for (let round = 0; round < rounds; round++) {
    const before = await ask(umpire, "processor")
    const { perSecond, latenciesMs } = await load(umpire.url, decision, connections, roundMs)
    const after = await ask(umpire, "processor")
    const each = (field: "threadMs" | "processMs"): string =>
      microseconds(((after[field] ?? 0) - (before[field] ?? 0)) / latenciesMs.length)
    console.log(
      `${Math.round(median(perSecond))} requests/s, ${each("threadMs")} us of the main thread and ${each("processMs")} us of the process each`,
    )
  }
}
umpire.child.send("close" satisfies ServerQuestion)
