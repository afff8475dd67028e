/** The HTTP server on raw sockets: what a browser or a client library would never send, and what must come back. */
import { once } from "node:events"
import { type Socket, connect } from "node:net"
import { gzipSync } from "node:zlib"
import { afterEach, expect, test, vi } from "vitest"
import { noProxies } from "../base/addresses.ts"
import { systemClock } from "../base/clock.ts"
import { createIds } from "../base/ids.ts"
import { Metrics } from "../base/telemetry.ts"
import { silentLog } from "../base/log.ts"
import {
  type Call,
  ConstantJson,
  EncodedJson,
  EventStream,
  type Handlers,
  type StreamEvent,
} from "../contract/endpoint.ts"
import { Fault } from "../contract/errors.ts"
import { openResponseSocket } from "../contract/openai/endpoints.ts"
import type { Table } from "../contract/table.ts"
import { openAccess } from "../../test/open-access.ts"
import { ByteBudget } from "./byte-budget.ts"
import { type HttpDeps, type HttpServer, createHttp } from "./http.ts"

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0)) await close()
})

interface Served {
  readonly http: HttpServer
  readonly port: number
  readonly metrics: Metrics
}

type Decide = (call: Call, text: string) => unknown

/** A server whose decisions are made by `decide`, of the text of the body. */
async function serve(decide: Decide, deps: Partial<HttpDeps> = {}): Promise<Served> {
  const metrics = new Metrics()
  const http = createHttp({
    handlers: {
      createDecision: async (call: Call) => {
        const output = await decide(call, Buffer.from(call.body as Uint8Array).toString())
        if (output instanceof EventStream || output instanceof ConstantJson) return output
        return new EncodedJson(JSON.stringify(output))
      },
      getHealth: async () => ({ status: "ok" }),
    } as unknown as Handlers<Table>,
    ...openAccess(),
    clock: systemClock,
    ids: createIds(),
    log: silentLog,
    metrics,
    requestTimeoutMs: 600_000,
    bytes: new ByteBudget(),
    trustedProxies: noProxies,
    ...deps,
  })
  const url = new URL(await http.listen("127.0.0.1", 0))
  closers.push(() => http.close(100))
  return { http, port: Number(url.port), metrics }
}

const post = (body: string, more = "", target = "/v1/decisions"): string =>
  `POST ${target} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer k\r\ncontent-type: application/json\r\n` +
  `${more}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`

/** A client that sees the very bytes. */
class Client {
  readonly socket: Socket
  text = ""

  constructor(port: number, options: { readonly allowHalfOpen?: boolean } = {}) {
    this.socket = connect({ port, host: "127.0.0.1", ...options })
    this.socket.setNoDelay(true).on("data", (part: Buffer) => (this.text += part.toString()))
    this.socket.on("error", () => undefined)
    closers.push(() => this.socket.destroy())
  }

  send(text: string | Buffer): this {
    this.socket.write(text)
    return this
  }

  async until(found: RegExp | string): Promise<void> {
    await expect
      .poll(() => this.text)
      .toEqual(typeof found === "string" ? expect.stringContaining(found) : expect.stringMatching(found))
  }

  async closed(): Promise<string> {
    // Not by once(): it rejects on an error, and a connection may well end by a reset.
    if (!this.socket.closed) await new Promise((resolve) => this.socket.once("close", resolve))
    return this.text
  }

  /** The bodies of the answers, when there are so many. */
  async bodies(count: number): Promise<string[]> {
    const found = (): string[] =>
      [...this.text.matchAll(/content-length: (\d+)[^]*?\r\n\r\n/gi)].map((head) => {
        const start = head.index + head[0].length
        return Buffer.from(this.text.slice(start)).subarray(0, Number(head[1])).toString()
      })
    await expect.poll(() => found().length).toBe(count)
    return found()
  }
}

/** A stream that goes on when it is told to. */
function heldStream(): { stream: EventStream; next(value: string): void; end(): void } {
  const waiting: ((event: IteratorResult<StreamEvent>) => void)[] = []
  const ready: IteratorResult<StreamEvent>[] = []
  const give = (event: IteratorResult<StreamEvent>): void => {
    const take = waiting.shift()
    if (take) take(event)
    else ready.push(event)
  }
  const events: AsyncIterableIterator<StreamEvent> = {
    [Symbol.asyncIterator]: () => events,
    next: async () =>
      ready.shift() ??
      (await new Promise<IteratorResult<StreamEvent>>((resolve) => void waiting.push(resolve))),
  }
  return {
    stream: new EventStream(events, "[DONE]"),
    next: (value) => give({ done: false, value: { name: null, value } }),
    end: () => give({ done: true, value: undefined }),
  }
}

test("connections that drip their heads are closed, all of 200 of them, and others are answered meanwhile", async () => {
  // Not the time that a client has to read its refusal: on a busy machine they all read late.
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] })
  closers.push(() => vi.useRealTimers())
  // Long enough for one that sends its head at once, however busy the machine is.
  const { port } = await serve((_, text) => text, { times: { headTimeoutMs: 15_000, checkEveryMs: 50 } })
  const dripping = Array.from({ length: 200 }, () => new Client(port).send("POST /v1/decisions HTTP/1.1\r\n"))
  const drip = setInterval(() => {
    for (const { socket } of dripping) if (socket.writable) socket.write("x: y\r\n")
  }, 250)
  closers.push(() => clearInterval(drip))
  expect(await new Client(port).send(post("b")).bodies(1)).toEqual(['"b"'])
  const texts = await Promise.all(dripping.map(async (client) => await client.closed()))
  for (const text of texts) expect(text).toMatch(/^HTTP\/1\.1 408 /)
})

test("a connection whose client does not close its side after a refusal is cut off", async () => {
  const { port } = await serve(() => 1, { times: { headTimeoutMs: 100, checkEveryMs: 20 } })
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true })
  const drip = setInterval(() => socket.write("x: y\r\n"), 20)
  closers.push(() => clearInterval(drip))
  socket.on("error", () => undefined).on("data", () => undefined)
  socket.write("POST /v1/decisions HTTP/1.1\r\n")
  // Nothing listens any more, so that what is written is answered with a reset.
  await new Promise((resolve) => socket.once("close", resolve))
})

test("a connection that says nothing is closed", async () => {
  const { port } = await serve(() => 1, { times: { headTimeoutMs: 100, checkEveryMs: 20 } })
  await new Client(port).closed()
})

async function serveInFakeTime() {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] })
  closers.push(() => vi.useRealTimers())
  const access = openAccess()
  const { port } = await serve((_, text) => text, access)
  const authenticate = vi.spyOn(access.gate, "authenticate")
  return { port, authenticate }
}

test("200 bodies that drip are refused at the minimum rate and their connections closed", async () => {
  const { port, authenticate } = await serveInFakeTime()
  const head = post("x".repeat(1000)).slice(0, -999)
  const dripping = Array.from({ length: 200 }, () => new Client(port).send(head))
  // Not by vi.waitFor, which would move the time too.
  await expect.poll(() => authenticate.mock.calls.length).toBe(200)
  await vi.advanceTimersByTimeAsync(9_000)
  expect(dripping.map(({ text }) => text).join("")).toBe("")
  await vi.advanceTimersByTimeAsync(7_000)
  for (const client of dripping) expect(await client.closed()).toMatch(/^HTTP\/1\.1 422 [^]*too slowly/)
})

test("a client that still sends when it is refused is not reset: it reads the answer, and what it sends is no request", async () => {
  const { port, authenticate } = await serveInFakeTime()
  const errors: Error[] = []
  const client = new Client(port, { allowHalfOpen: true }).send(post("x".repeat(1000)).slice(0, -999))
  client.socket.on("error", (error) => errors.push(error))
  await expect.poll(() => authenticate.mock.calls.length).toBe(1)
  // Answered after what the server has read and written before.
  const roundTrip = async (): Promise<unknown> =>
    await new Client(port).send("GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n").bodies(1)
  await vi.advanceTimersByTimeAsync(9_000)
  while (client.text === "") {
    // Far less than the second after which it is cut off.
    await vi.advanceTimersByTimeAsync(200)
    await roundTrip()
  }
  await expect.poll(() => client.socket.readableEnded).toBe(true)
  expect(client.text).toMatch(/^HTTP\/1\.1 422 [^]*too slowly/)
  for (const late of ["x".repeat(999), post("another"), "more"]) {
    client.send(late)
    await roundTrip()
  }
  client.socket.end()
  await client.closed()
  expect(errors).toEqual([])
  expect(authenticate).toHaveBeenCalledTimes(1)
})

test("a body that is refused is answered before it has come, and the connection goes on after its end", async () => {
  const { port } = await serve((_, text) => text)
  const target = "/v1/nothing"
  const client = new Client(port).send(post("x".repeat(1000), "", target).slice(0, -999))
  await client.until(/^HTTP\/1\.1 404 /)
  client.send(`${"x".repeat(999)}${post('"next"')}`)
  expect((await client.bodies(2))[1]).toBe('"\\"next\\""')
})

test("what a refused request still sends is thrown away for 10 s, then the connection is closed", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] })
  closers.push(() => vi.useRealTimers())
  const { port } = await serve((_, text) => text)
  const client = new Client(port).send(post("x".repeat(1000), "", "/v1/nothing").slice(0, -999))
  await client.bodies(1)
  await vi.advanceTimersByTimeAsync(9_900)
  expect(client.socket.closed).toBe(false)
  await vi.advanceTimersByTimeAsync(200)
  await client.closed()
})

test("one connection more than the limit of an address is closed, and a place is free again after a close", async () => {
  const { port } = await serve((_, text) => text, { limits: { connectionsMax: 100, perAddressMax: 2 } })
  const [first, second] = [new Client(port).send(post("1")), new Client(port).send(post("2"))]
  await Promise.all([first?.bodies(1), second?.bodies(1)])
  expect(await new Client(port).send(post("3")).closed()).toBe("")
  first?.socket.destroy()
  await expect
    .poll(async () => {
      const client = new Client(port).send(post("4"))
      await Promise.race([client.closed(), client.bodies(1)])
      client.socket.destroy()
      return client.text
    })
    .toContain('"4"')
})

test("the limit of an address does not count trusted proxies, but the limit of all connections does", async () => {
  const { port } = await serve((_, text) => text, {
    limits: { connectionsMax: 3, perAddressMax: 1 },
    trustedProxies: { hops: 1, networks: null },
  })
  const open = ["1", "2", "3"].map((text) => new Client(port).send(post(text)))
  for (const client of open) await client.bodies(1)
  expect(await new Client(port).send(post("4")).closed()).toBe("")
})

test("a request is the same wherever it is cut on its way", async () => {
  const { port } = await serve((_, text) => ({ text }))
  const bytes = Buffer.from(post('{"a":"é"}'))
  for (let cut = 1; cut < bytes.length; cut += 7) {
    const client = new Client(port).send(bytes.subarray(0, cut))
    await once(client.socket, "connect")
    client.send(bytes.subarray(cut))
    expect(await client.bodies(1)).toEqual(['{"text":"{\\"a\\":\\"é\\"}"}'])
  }
})

/** Of requests sent ahead on one connection: those whose handler was called, and what lets each of them end. */
async function serveHeld(): Promise<Served & { readonly begun: string[]; readonly release: () => void }> {
  const begun: string[] = []
  const held: (() => void)[] = []
  const served = await serve(async (_, text) => {
    begun.push(text)
    await new Promise<void>((resolve) => held.push(resolve))
    return text
  })
  return { ...served, begun, release: () => held.shift()?.() }
}

const numbered = (count: number): string[] => Array.from({ length: count }, (_, at) => String(at))

test("pipelined requests are answered in their order, one after the other", async () => {
  const { port, begun, release } = await serveHeld()
  const texts = numbered(20)
  const client = new Client(port).send(texts.map((text) => post(text)).join(""))
  for (const [at] of texts.entries()) {
    await expect.poll(() => begun).toEqual(texts.slice(0, at + 1))
    release()
  }
  expect(await client.bodies(20)).toEqual(texts.map((text) => `"${text}"`))
})

test("a client that goes away takes the requests with it that it sent ahead", async () => {
  const { port, begun } = await serveHeld()
  const client = new Client(port).send(
    numbered(20)
      .map((text) => post(text))
      .join(""),
  )
  await expect.poll(() => begun).toEqual(["0"])
  client.socket.resetAndDestroy()
  // A request of another connection ends after what the first one left behind.
  await new Client(port).send("GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n").bodies(1)
  expect(begun).toEqual(["0"])
})

test.each([
  ["as many as may wait", 513, 513],
  ["one more", 514, 513],
])("of requests that come in one piece, %s: %i sent, %i answered", async (_, sent, answered) => {
  const { port } = await serve(() => 1)
  const client = new Client(port).send("GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n".repeat(sent))
  expect(await client.bodies(answered)).toHaveLength(answered)
  if (answered < sent) await client.closed()
  else expect(await client.send(post("next")).bodies(answered + 1)).toHaveLength(answered + 1)
})

test("a client that does not take its answers is not read, and what it asked for is not made", async () => {
  let made = 0
  const answer = "x".repeat(1024 * 1024)
  const { port } = await serve(() => (made++, answer))
  const socket = connect({ port, host: "127.0.0.1" }).on("error", () => undefined)
  closers.push(() => socket.destroy())
  // Far more than the buffers of a connection hold while the client does not read.
  const requests = post("x".repeat(100)).repeat(100_000)
  socket.write(requests)
  await expect.poll(() => made).toBeGreaterThan(0)
  for (let round = 0; round < 20; round++)
    await new Client(port).send("GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n").bodies(1)
  // The buffers of the kernel take a few answers; one waits in memory.
  expect(made).toBeLessThan(16)
  expect(socket.writableLength).toBeGreaterThan(0)
})

test("a client that takes nothing of its answer is cut off", async () => {
  const answer = "x".repeat(64 * 1024 * 1024)
  const { port, metrics } = await serve(() => answer, { times: { stallMs: 300 } })
  const idle = connect({ port, host: "127.0.0.1" }).on("error", () => undefined)
  closers.push(() => idle.destroy())
  idle.write(post("a"))
  const counted = 'umpire_http_requests_total{route="/v1/decisions",method="POST",status="200"} 1'
  await expect.poll(() => metrics.text()).toContain(counted)
})

test("bodies that are held half sent take the budget, and the next is refused with a time to come back", async () => {
  const bytes = new ByteBudget(16 * 1024 * 1024)
  const { port } = await serve((_, text) => text.length, { bytes })
  // One organization may hold 7 MiB.
  const text = "x".repeat(3_500 * 1024)
  const held = [1, 2].map(() => new Client(port).send(post(text).slice(0, -1)))
  await expect.poll(() => bytes.heldBytes).toBe(2 * (text.length - 1))
  const refused = new Client(port).send(post(text))
  await refused.until(/^HTTP\/1\.1 503 [^]*retry-after: 1\r\n[^]*over_capacity/)
  expect(await new Client(port).send(post("small")).bodies(1)).toEqual(["5"])
  for (const client of held) {
    client.send("x")
    expect(await client.bodies(1)).toEqual([String(text.length)])
  }
  await expect.poll(() => bytes.heldBytes).toBe(0)
  expect(await new Client(port).send(post(text)).bodies(1)).toEqual([String(text.length)])
})

test("a body of a client that goes away is given back at once, and so is an answer that nobody takes", async () => {
  const bytes = new ByteBudget()
  const answer = "y".repeat(32 * 1024 * 1024)
  const { port } = await serve(() => answer, { bytes })
  const sending = new Client(port).send(post("x".repeat(1_000_000)).slice(0, -1))
  await expect.poll(() => bytes.heldBytes).toBe(999_999)
  sending.socket.resetAndDestroy()
  await expect.poll(() => bytes.heldBytes).toBe(0)
  const idle = connect({ port, host: "127.0.0.1" }).on("error", () => undefined)
  idle.write(post("a"))
  await expect.poll(() => bytes.heldBytes).toBe(answer.length + 3)
  idle.resetAndDestroy()
  await expect.poll(() => bytes.heldBytes).toBe(0)
})

test("a compressed body takes what it becomes", async () => {
  const bytes = new ByteBudget(16 * 1024 * 1024)
  const { port } = await serve((_, text) => text.length, { bytes })
  const send = (size: number): Client => {
    const zipped = gzipSync("x".repeat(size))
    const head = post("", "content-encoding: gzip\r\n").replace(
      "content-length: 0",
      `content-length: ${zipped.length}`,
    )
    return new Client(port).send(Buffer.concat([Buffer.from(head), zipped]))
  }
  expect(await send(1_000_000).bodies(1)).toEqual(["1000000"])
  const other = bytes.lease()
  other.holder = "org_1"
  other.add(6.5 * 1024 * 1024)
  await send(1_000_000).until(/^HTTP\/1\.1 503 [^]*over_capacity/)
  expect(bytes.heldBytes).toBe(6.5 * 1024 * 1024)
})

test("a constant answer is sent once to a client that names its ETag", async () => {
  const constant = new ConstantJson(Buffer.from('{"a":1}'), '"tag"')
  const { port } = await serve(() => constant)
  const client = new Client(port).send(post("a"))
  await client.until(/^HTTP\/1\.1 200 [^]*cache-control: no-cache\r\n[^]*etag: "tag"[^]*\{"a":1\}$/)
  const second = new Client(port).send(post("a", 'if-none-match: "tag"\r\nconnection: close\r\n'))
  expect(await second.closed()).toMatch(/^HTTP\/1\.1 304 [^]*etag: "tag"\r\n[^]*\r\n\r\n$/)
  const other = new Client(port).send(post("a", 'if-none-match: "old"\r\n'))
  await other.until(/^HTTP\/1\.1 200 /)
})

test("bytes that are not HTTP do not get into an answer that is being streamed: it ends whole, then the connection", async () => {
  const held = heldStream()
  const { port } = await serve(() => held.stream)
  const client = new Client(port).send(post("a"))
  held.next("one")
  await client.until("one")
  client.send("garbage\r\n\r\n")
  // Answered after the bytes were read.
  await new Client(port).send("GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n").bodies(1)
  client.send("more garbage\r\n\r\n")
  held.next("two")
  await client.until("two")
  held.end()
  const text = await client.closed()
  expect(text.match(/HTTP\/1\.1/g)).toHaveLength(1)
  expect(text).toMatch(/data: "one"[^]*data: "two"[^]*data: \[DONE\]\n\n\r\n0\r\n\r\n$/)
})

test.each([
  ["another request", post("b")],
  ["bytes that are not HTTP", "garbage\r\n\r\n"],
])("after Connection: close, %s does not lose the first answer", async (_, behind) => {
  const texts: string[] = []
  const { port } = await serve((_call, text) => {
    texts.push(text)
    return text
  })
  const client = new Client(port).send(post("a", "connection: close\r\n") + behind)
  const text = await client.closed()
  expect(text).toMatch(/^HTTP\/1\.1 200 OK\r\n[^]*\r\n\r\n"a"$/)
  expect(texts).toEqual(["a"])
})

test.each([
  ["bytes that are not HTTP", "hello\r\n\r\n", /^HTTP\/1\.1 400 /],
  ["a head without end", `POST /v1/decisions HTTP/1.1\r\nx: ${"y".repeat(20_000)}`, /^HTTP\/1\.1 431 /],
  [
    "two lengths",
    post("ab").replace("content-length: 2", "content-length: 2\r\ncontent-length: 3"),
    /^HTTP\/1\.1 400 /,
  ],
  ["two hosts", post("ab").replace("host: a", "host: a\r\nHost: b"), /^HTTP\/1\.1 400 /],
  ["two equal hosts", post("ab").replace("host: a", "host: a\r\nhost: a"), /^HTTP\/1\.1 400 /],
  ["no host", post("ab").replace("host: a\r\n", ""), /^HTTP\/1\.1 400 /],
  ["no key", post("ab").replace("authorization: Bearer k\r\n", ""), /^HTTP\/1\.1 401 /],
  ["another type", post("ab").replace("application/json", "text/plain"), /^HTTP\/1\.1 422 /],
])("%s is refused", async (_, request, status) => {
  const { port } = await serve(() => 1)
  await new Client(port).send(request).until(status)
})

test("HEAD answers as GET does, without the body", async () => {
  const { port } = await serve(() => 1)
  const client = new Client(port).send("HEAD /healthz HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
  const length = JSON.stringify({ status: "ok" }).length
  expect(await client.closed()).toMatch(
    new RegExp(`^HTTP/1\\.1 200 OK\\r\\n[^]*content-length: ${length}\\r\\n[^]*\\r\\n\\r\\n$`),
  )
  const other = new Client(port).send("HEAD /v1/decisions HTTP/1.1\r\nhost: a\r\n\r\n")
  await other.until(/^HTTP\/1\.1 405 /)
})

test.each([
  ["", "/v1/decisions", "a"],
  ["a query", "/v1/decisions?x=1", "a"],
  ["absolute form", "http://other:99/v1/decisions", "other:99"],
  ["absolute form and a query", "HTTP://other/v1/decisions?x=1", "other"],
])("a target is understood: %s", async (_, target, host) => {
  const { port } = await serve(({ request }) => request.header("host"))
  expect(await new Client(port).send(post("", "", target)).bodies(1)).toEqual([JSON.stringify(host)])
})

test("an error is told in full, and the connection goes on", async () => {
  const { port } = await serve((_, text) => {
    if (text === "bad") throw new Fault("invalid_request", "Cannot take it")
    return text
  })
  const client = new Client(port).send(post("bad"))
  await client.until(/^HTTP\/1\.1 422 Unprocessable Entity\r\n[^]*Cannot take it/)
  client.send(post("ok"))
  await client.until(/"ok"$/)
})

test("a client that goes away ends its request", async () => {
  const reasons: unknown[] = []
  const started: string[] = []
  const { port, metrics } = await serve(async ({ request: { signal } }, text) => {
    started.push(text)
    await once(signal, "abort")
    reasons.push(signal.reason)
  })
  const [closing, breaking] = [new Client(port).send(post("a")), new Client(port).send(post("b"))]
  await expect.poll(() => started.length).toBe(2)
  closing?.socket.end()
  breaking?.socket.resetAndDestroy()
  await expect.poll(() => reasons).toMatchObject([{ code: "client_closed" }, { code: "client_closed" }])
  const counted = 'umpire_http_requests_total{route="/v1/decisions",method="POST",status="200"} 2'
  await expect.poll(() => metrics.text()).toContain(counted)
})

test("a server that stops ends idle connections at once, and answers the request that it has", async () => {
  const held = Promise.withResolvers<void>()
  const started = Promise.withResolvers<void>()
  const { http, port } = await serve(async (_, text) => {
    if (text === "a") return text
    started.resolve()
    await held.promise
    return text
  })
  // One that never closes its own side must not hold up the stop.
  const idle = new Client(port, { allowHalfOpen: true }).send(post("a"))
  await idle.bodies(1)
  const busy = new Client(port).send(post("b"))
  await started.promise
  const stopped = http.close(60_000)
  await expect.poll(() => idle.socket.readableEnded).toBe(true)
  held.resolve()
  await stopped
  expect(await busy.closed()).toMatch(/\r\nconnection: close\r\n[^]*"b"$/i)
})

test("a request that outlasts the stop is ended with it", async () => {
  const started = Promise.withResolvers<void>()
  const { http, port } = await serve(async () => {
    started.resolve()
    await new Promise(() => undefined)
  })
  const client = new Client(port).send(post("a"))
  await started.promise
  await http.close(20)
  await client.closed()
})

test("a connection that is still being upgraded when the server stops is ended with it", async () => {
  const upgrading = Promise.withResolvers<void>()
  const access = openAccess()
  const { http, port } = await serve(() => 1, {
    ...access,
    gate: {
      ...access.gate,
      authenticate: async () => {
        upgrading.resolve()
        return await new Promise<never>(() => undefined)
      },
    },
    socket: { endpoint: openResponseSocket, converse: () => ({ answer: () => [] as never }) },
  })
  const client = new Client(port).send(
    "GET /v1/responses HTTP/1.1\r\nhost: a\r\nupgrade: websocket\r\nconnection: upgrade\r\nauthorization: Bearer k\r\n" +
      "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-version: 13\r\n\r\n",
  )
  await upgrading.promise
  await http.close(10)
  expect(await client.closed()).toBe("")
})
