import { once } from "node:events"
import { type AddressInfo, type Socket, connect, createServer } from "node:net"
import { setTimeout as wait } from "node:timers/promises"
import { promisify } from "node:util"
import { afterEach, expect, test } from "vitest"
import { systemClock } from "../base/clock.ts"
import { createIds } from "../base/ids.ts"
import { silentLog } from "../base/log.ts"
import { type Call, EncodedJson, EventStream, type Handlers } from "../contract/endpoint.ts"
import { Fault } from "../contract/errors.ts"
import type { Table } from "../contract/table.ts"
import { openStages } from "../../test/stages.ts"
import { type Answered, type HttpServer, createHttp } from "./http.ts"
import type { Outlet } from "./reply.ts"
import { ShortWay } from "./short-way.ts"

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0)) await close()
})

interface Served {
  readonly http: HttpServer
  readonly port: number
  readonly answered: Answered[]
}

/** A server whose decisions are made by `decide`, of the text of the body. */
async function serve(decide: (call: Call, text: string) => unknown): Promise<Served> {
  const answered: Answered[] = []
  const http = createHttp({
    handlers: {
      createDecision: async (call: Call) =>
        new EncodedJson(JSON.stringify(await decide(call, Buffer.from(call.body as Uint8Array).toString()))),
      // Which no such endpoint does.
      createSystemOne: async () => new EventStream(emptyEvents(), null),
      health: async () => ({ status: "ok" }),
    } as unknown as Handlers<Table>,
    ...openStages(),
    clock: systemClock,
    ids: createIds(),
    log: silentLog,
    answered: (one) => answered.push(one),
    requestTimeoutMs: 60_000,
    trustProxy: false,
  })
  const url = new URL(await http.listen("127.0.0.1", 0))
  closers.push(() => http.close(100))
  return { http, port: Number(url.port), answered }
}

async function* emptyEvents(): AsyncGenerator<never> {}

function post(body: string, more = ""): string {
  const length = Buffer.byteLength(body)
  return (
    "POST /v1/decisions HTTP/1.1\r\nhost: a\r\nauthorization: Bearer k\r\ncontent-type: application/json\r\n" +
    `${more}content-length: ${length}\r\n\r\n${body}`
  )
}

/** A client that sees the very bytes. */
class Client {
  readonly socket: Socket
  text = ""

  constructor(port: number) {
    this.socket = connect(port, "127.0.0.1")
    this.socket.setNoDelay(true).on("data", (part: Buffer) => (this.text += part.toString()))
    this.socket.on("error", () => undefined)
    closers.push(() => this.socket.destroy())
  }

  send(text: string | Buffer): void {
    this.socket.write(text)
  }

  /** The bodies of the answers, when there are so many. */
  async bodies(count: number): Promise<string[]> {
    const found = (): string[] =>
      [...this.text.matchAll(/content-length: (\d+)[^]*?\r\n\r\n/gi)].map((head) => {
        const start = head.index + head[0].length
        return Buffer.from(this.text.slice(start)).subarray(0, Number(head[1])).toString()
      })
    await expect.poll(() => found().length, { timeout: 5_000 }).toBe(count)
    return found()
  }
}

/** How node writes the head of an answer, and the short way does not. */
const byNode = /\r\nDate: /

test("a plain request is answered by the short way, and its connection serves the next one", async () => {
  const { port, answered } = await serve((_, text) => ({ text }))
  const client = new Client(port)
  client.send(post("é", "x-request-id: mine\r\n"))
  expect(await client.bodies(1)).toEqual(['{"text":"é"}'])
  expect(client.text).toMatch(/^HTTP\/1\.1 200 OK\r\n/)
  expect(client.text).toContain("\r\nx-request-id: mine\r\n")
  expect(client.text).toContain("\r\nconnection: keep-alive\r\nkeep-alive: timeout=72\r\n\r\n")
  expect(client.text).toMatch(/\r\ndate: \w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT\r\n/)
  client.send(post("b"))
  expect((await client.bodies(2))[1]).toBe('{"text":"b"}')
  expect(client.text).not.toMatch(byNode)
  expect(answered).toMatchObject([
    { route: "/v1/decisions", method: "POST", status: 200 },
    { route: "/v1/decisions", method: "POST", status: 200 },
  ])
})

test("a request is the same wherever it is cut on its way", async () => {
  const { port } = await serve((_, text) => ({ text }))
  const bytes = Buffer.from(post('{"a":"é"}'))
  for (let cut = 1; cut < bytes.length; cut += 3) {
    const client = new Client(port)
    client.send(bytes.subarray(0, cut))
    await wait(2)
    client.send(bytes.subarray(cut))
    expect(await client.bodies(1)).toEqual(['{"text":"{\\"a\\":\\"é\\"}"}'])
    client.socket.destroy()
  }
})

test("a body of 64 KiB goes the short way, and one byte more by node, both whole", async () => {
  const { port } = await serve((_, text) => text.length)
  for (const [length, way] of [
    [64 * 1024, false],
    [64 * 1024 + 1, true],
  ] as const) {
    const client = new Client(port)
    client.send(post("x".repeat(length)))
    expect(await client.bodies(1)).toEqual([String(length)])
    expect(byNode.test(client.text)).toBe(way)
  }
})

test("requests that are sent before their answers are answered in their order", async () => {
  const { port } = await serve(async (_, text) => {
    if (text === "0") await wait(20)
    return text
  })
  const client = new Client(port)
  const texts = Array.from({ length: 300 }, (_, at) => String(at))
  client.send(texts.map((text) => post(text)).join(""))
  expect(await client.bodies(300)).toEqual(texts.map((text) => `"${text}"`))
})

test("what was sent behind a request is not run when its client has left", async () => {
  const texts: string[] = []
  const { port, answered } = await serve(async ({ request }, text) => {
    texts.push(text)
    await new Promise<void>((resolve) => request.signal.addEventListener("abort", () => resolve()))
  })
  for (const leave of ["end", "destroy", "resetAndDestroy"] as const) {
    const client = new Client(port)
    client.send(post(leave) + post("behind") + post("behind"))
    await expect.poll(() => texts).toContain(leave)
    client.socket[leave]()
  }
  await expect.poll(() => answered.length).toBe(3)
  await wait(50)
  expect(texts).toEqual(["end", "destroy", "resetAndDestroy"])
})

test.each([
  ["another endpoint", "GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n"],
  [
    "a body in chunks",
    post("").replace("content-length: 0\r\n\r\n", "transfer-encoding: chunked\r\n\r\n1\r\nc\r\n0\r\n\r\n"),
  ],
  ["a query", post("c").replace("decisions", "decisions?a=1")],
  ["a body that is large", post("c".repeat(70_000))],
])("%s goes to node with all that follows it", async (_, other) => {
  const { port } = await serve((_call, text) => text.length)
  const client = new Client(port)
  client.send(post("ab"))
  await client.bodies(1)
  expect(client.text).not.toMatch(byNode)
  client.send(other + post("abc"))
  await expect.poll(() => client.text).toMatch(byNode)
  await expect.poll(() => client.text.endsWith("\r\n\r\n3")).toBe(true)
  client.send(post("abcd"))
  await expect.poll(() => client.text.endsWith("\r\n\r\n4")).toBe(true)
})

test.each([
  ["what is no HTTP", "hello\r\n\r\n", /^HTTP\/1\.1 400 /],
  ["a head without end", `POST /v1/decisions HTTP/1.1\r\nx: ${"y".repeat(20_000)}`, /^HTTP\/1\.1 431 /],
  [
    "two lengths",
    post("ab").replace("content-length: 2", "content-length: 2\r\ncontent-length: 3"),
    /^HTTP\/1\.1 400 /,
  ],
  ["no key", post("ab").replace("authorization: Bearer k\r\n", ""), /^HTTP\/1\.1 401 /],
  ["another type", post("ab").replace("application/json", "text/plain"), /^HTTP\/1\.1 422 /],
])("%s is refused", async (_, request, status) => {
  const { port } = await serve(() => 1)
  const client = new Client(port)
  client.send(request)
  await expect.poll(() => client.text).toMatch(status)
})

test("an error is told in full, and the connection goes on", async () => {
  const { port } = await serve((_, text) => {
    if (text === "bad") throw new Fault("invalid_request", "Cannot take it")
    return text
  })
  const client = new Client(port)
  client.send(post("bad"))
  await expect.poll(() => client.text).toMatch(/^HTTP\/1\.1 422 Unprocessable Entity\r\n[^]*Cannot take it/)
  client.send(post("ok"))
  await expect.poll(() => client.text.endsWith('"ok"')).toBe(true)
})

test("a mistake of ours is an error of one request", async () => {
  const { port } = await serve((_, text) => text)
  const client = new Client(port)
  client.send(post("a").replace("decisions", "systemone"))
  await expect.poll(() => client.text).toMatch(/^HTTP\/1\.1 500 /)
  client.send(post("b"))
  await expect.poll(() => client.text.endsWith('"b"')).toBe(true)
})

test("a client that goes away ends its request", async () => {
  const reasons: unknown[] = []
  const { port, answered } = await serve(
    async ({ request }) =>
      await new Promise((_, reject) =>
        request.signal.addEventListener("abort", () => {
          reasons.push(request.signal.reason)
          reject(request.signal.reason as Error)
        }),
      ),
  )
  const [closing, breaking] = [new Client(port), new Client(port)]
  closing.send(post("a"))
  breaking.send(post("b"))
  await wait(50)
  closing.socket.end()
  breaking.socket.resetAndDestroy()
  await expect.poll(() => reasons).toMatchObject([{ code: "client_closed" }, { code: "client_closed" }])
  await expect.poll(() => answered.length).toBe(2)
})

test("a server that stops ends idle connections at once, and answers the request that it has", async () => {
  const { http, port } = await serve(async (_, text) => {
    await wait(100)
    return text
  })
  const [idle, busy, silent] = [new Client(port), new Client(port), new Client(port)]
  idle.send(post("a"))
  await idle.bodies(1)
  busy.send(post("b"))
  await wait(30)
  const ended = Promise.all([idle, busy, silent].map(async ({ socket }) => await once(socket, "close")))
  await http.close(5_000)
  await ended
  expect(busy.text).toContain("\r\nconnection: close\r\n")
  expect(busy.text.endsWith('"b"')).toBe(true)
})

test("a server that stops does not wait for clients that never close their side", async () => {
  const { http, port } = await serve(async (_, text) => {
    await wait(50)
    return text
  })
  const [idle, busy] = [0, 1].map(() => {
    const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true })
    socket.on("error", () => undefined).resume()
    closers.push(() => socket.destroy())
    return socket
  })
  idle?.write(post("a"))
  await once(idle ?? process, "data")
  busy?.write(post("b"))
  await wait(20)
  // Longer than the test may take: it must end by itself.
  await http.close(60_000)
})

test("a request that outlasts the stop is ended with it", async () => {
  const { http, port } = await serve(async () => await new Promise(() => undefined))
  const client = new Client(port)
  client.send(post("a"))
  await wait(30)
  await http.close(50)
  await expect.poll(() => client.socket.closed).toBe(true)
})

interface Way {
  readonly port: number
  /** What was left to node. */
  readonly left: string[]
  readonly found: string[]
  /** How many connections it has. */
  readonly count: () => Promise<number>
}

/** The way alone, with times that a test can wait for. */
async function openWay(answer: (outlet: Outlet) => void): Promise<Way> {
  const left: string[] = []
  const found: string[] = []
  const way = new ShortWay<string>({
    find: (path) => {
      found.push(path)
      return path
    },
    receive: (_, __, outlet) => {
      answer(outlet)
      return { closed: () => undefined }
    },
    leave: (socket) => void socket.on("data", (chunk: Buffer) => left.push(chunk.toString())),
    headBytesMax: 1024,
    headTimeoutMs: 300,
    keepAliveMs: 300,
  })
  const server = createServer({ allowHalfOpen: true }, (socket) => way.take(socket))
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  closers.push(
    () => server.close(),
    () => way.closeAll(),
  )
  const count = promisify(server.getConnections.bind(server))
  return { port: (server.address() as AddressInfo).port, left, found, count }
}

test("a connection that says nothing ends, later when it has been used, and half a request is left to node", async () => {
  const { port, left } = await openWay((outlet) =>
    setImmediate(() => {
      outlet.writeHead(200, ["content-length", "1"])
      outlet.end("1")
    }),
  )
  const [silent, used, half] = [new Client(port), new Client(port), new Client(port)]
  const startedMs = performance.now()
  const ends = { silent: 0, used: 0 }
  silent.socket.on("close", () => (ends.silent = performance.now() - startedMs))
  used.socket.on("close", () => (ends.used = performance.now() - startedMs))
  used.send(post("a"))
  half.send(post("abc").slice(0, -1))
  await expect.poll(() => ends.used, { timeout: 5_000 }).toBeGreaterThan(0)
  expect(ends.silent).toBeGreaterThan(0)
  expect(ends.silent).toBeLessThan(ends.used)
  expect(left.join("")).toBe(post("abc").slice(0, -1))
})

test("who takes long over a body is left to node, however often a part of it comes", async () => {
  const { port, left } = await openWay((outlet) => outlet.destroy())
  const client = new Client(port)
  const request = post("0123456789")
  client.send(request.slice(0, -10))
  for (let at = request.length - 10; at < request.length - 1; at++) {
    await wait(80)
    client.send(request.slice(at, at + 1))
  }
  await expect.poll(() => left.join("")).toBe(request.slice(0, -1))
})

test("a head is read once, in however many parts the body comes", async () => {
  const { port, found } = await openWay((outlet) => {
    setImmediate(() => {
      outlet.writeHead(200, ["content-length", "1"])
      outlet.end("1")
    })
  })
  const client = new Client(port)
  const request = post("x".repeat(200))
  client.send(request.slice(0, -200))
  for (let part = 0; part < 200; part++) {
    await new Promise((resolve) => setImmediate(resolve))
    client.send("x")
  }
  await client.bodies(1)
  expect(found).toEqual(["/v1/decisions"])
})

test("who sends without end and reads nothing is cut off", async () => {
  let answers = 0
  const large = "y".repeat(32 * 1024)
  const { port, count } = await openWay((outlet) =>
    queueMicrotask(() => {
      answers++
      outlet.writeHead(200, ["content-length", String(large.length)])
      outlet.end(large)
    }),
  )
  const client = new Client(port)
  await once(client.socket, "connect")
  client.socket.pause()
  const request = Buffer.from(post("x".repeat(8 * 1024)))
  for (let sent = 0; sent < 4_000; sent++) client.send(request)
  await expect.poll(async () => await count(), { timeout: 5_000 }).toBe(0)
  expect(answers).toBeGreaterThan(1)
  expect(answers).toBeLessThan(1_000)
})

test("a client that left is not left to node", async () => {
  const outlets: Outlet[] = []
  const { port, left } = await openWay((outlet) => void outlets.push(outlet))
  const client = new Client(port)
  client.send(`${post("a")}GET / HTTP/1.1\r\nhost: a\r\n\r\n`)
  await expect.poll(() => outlets.length).toBe(1)
  client.socket.resetAndDestroy()
  await wait(50)
  outlets[0]?.writeHead(200, ["content-length", "1"])
  outlets[0]?.end("1")
  await wait(50)
  expect(left).toEqual([])
})

test("nothing is answered after the last answer of a connection", async () => {
  let answers = 0
  const { port } = await openWay((outlet) =>
    setImmediate(() => {
      answers++
      outlet.writeHead(200, ["content-length", "1", "connection", "close"])
      outlet.end("1")
    }),
  )
  const client = new Client(port)
  client.send(post("a") + post("b"))
  await once(client.socket, "close")
  expect(answers).toBe(1)
  expect(await client.bodies(1)).toEqual(["1"])
})

test("a head that no header may hold is not sent", async () => {
  const errors: unknown[] = []
  const { port } = await openWay((outlet) => {
    for (const value of ["a\r\nset-cookie: b", "é", "a\0"])
      try {
        outlet.writeHead(200, ["x", value])
      } catch (error) {
        errors.push(error)
      }
    outlet.destroy()
  })
  const client = new Client(port)
  client.send(post("a"))
  await expect.poll(() => client.socket.closed).toBe(true)
  expect(errors).toHaveLength(3)
  expect(client.text).toBe("")
})
