import { once } from "node:events"
import { createServer } from "node:http"
import { type AddressInfo, connect } from "node:net"
import type { Duplex } from "node:stream"
import { setTimeout as wait } from "node:timers/promises"
import { afterEach, expect, test, vi } from "vitest"
import { WebSocket } from "ws"
import { noProxies } from "../base/addresses.ts"
import { systemClock } from "../base/clock.ts"
import { createIds } from "../base/ids.ts"
import { silentLog } from "../base/log.ts"
import { openResponseSocket } from "../contract/openai/endpoints.ts"
import { ByteBudget } from "./byte-budget.ts"
import { openAccess } from "../../test/open-access.ts"
import { type Conversation, type WebSocketTimes, createWebSockets } from "./websocket.ts"

const closers: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0)) await close()
})

interface Server {
  /** What every check of a key waits for. */
  readonly authenticating?: Promise<void>
  readonly bytes?: ByteBudget
}

async function serve(
  conversation: Conversation,
  times: Partial<WebSocketTimes> = {},
  { authenticating = Promise.resolve(), bytes = new ByteBudget() }: Server = {},
) {
  const access = openAccess(() => !revoked.now)
  const revoked = { now: false }
  const taken = { count: 0 }
  const sockets = createWebSockets(
    { endpoint: openResponseSocket, converse: () => conversation, times },
    {
      ...access,
      gate: {
        ...access.gate,
        authenticate: async (bearer) => {
          await authenticating
          return await access.gate.authenticate(bearer)
        },
      },
      limiter: {
        take: async () => {
          taken.count++
          return {}
        },
      },
      clock: systemClock,
      ids: createIds(),
      log: silentLog,
      requestTimeoutMs: 600_000,
      bytes,
      trustedProxies: noProxies,
    },
  )
  const server = createServer()
  server.on("upgrade", (message, stream, head) => sockets.upgrade(message, stream, head))
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  closers.push(async () => {
    await sockets.close(100)
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  const { port } = server.address() as AddressInfo
  const begin = (): WebSocket =>
    new WebSocket(`ws://127.0.0.1:${port}/v1/responses`, { headers: { authorization: "Bearer key" } })
  const open = async (): Promise<WebSocket> => {
    const socket = begin()
    await new Promise((resolve, reject) => socket.once("open", resolve).once("error", reject))
    return socket
  }
  return { port, begin, open, revoked, taken, sockets, server }
}

const echo: Conversation = {
  async *answer(message) {
    yield JSON.parse(Buffer.from(message).toString())
  },
}

const messageOf = async (socket: WebSocket): Promise<unknown> =>
  await new Promise((resolve) =>
    socket.once("message", (text: Buffer) => resolve(JSON.parse(text.toString()))),
  )
const closeOf = async (socket: WebSocket): Promise<number> =>
  await new Promise((resolve) => socket.once("close", resolve))

const upgrade =
  "GET /v1/responses HTTP/1.1\r\nhost: x\r\nupgrade: websocket\r\nconnection: upgrade\r\nauthorization: Bearer key\r\n" +
  "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-version: 13\r\n\r\n"

test("a client that resets while it is authenticated ends nothing but its own connection", async () => {
  const authenticated = Promise.withResolvers<void>()
  const { port, open, server } = await serve(echo, {}, { authenticating: authenticated.promise })
  const upgrading = once(server, "upgrade")
  const stream = connect(port, "127.0.0.1").on("error", () => undefined)
  stream.write(upgrade)
  const [, accepted] = (await upgrading) as [unknown, Duplex]
  const broken = new Promise((resolve) => accepted.once("close", resolve))
  stream.resetAndDestroy()
  await broken
  authenticated.resolve()
  const socket = await open()
  socket.send("{}")
  expect(await messageOf(socket)).toEqual({})
  socket.close()
})

test("a connection that is authenticated while the server stops is refused", async () => {
  const authenticated = Promise.withResolvers<void>()
  const { port, sockets, server } = await serve(echo, {}, { authenticating: authenticated.promise })
  const upgrading = once(server, "upgrade")
  const stream = connect(port, "127.0.0.1")
  stream.write(upgrade)
  await upgrading
  await sockets.close(100)
  authenticated.resolve()
  const [text] = (await once(stream, "data")) as [Buffer]
  expect(text.toString()).toMatch(/^HTTP\/1\.1 429 [^]*the server is stopping/)
})

test("a connection whose client answers no ping is ended", async () => {
  const { port } = await serve(echo, { pingMs: 20 })
  // A bare TCP client that shakes hands and then stays silent, like a machine that lost its network.
  const stream = connect(port, "127.0.0.1")
  const ended = new Promise<void>((resolve) => stream.once("close", () => resolve()))
  stream.on("error", () => undefined).on("data", () => undefined)
  stream.write(upgrade)
  await ended
})

test("a connection that answers pings stays", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] })
  closers.push(async () => void vi.useRealTimers())
  const { open } = await serve(echo, { pingMs: 250 })
  const socket = await open()
  for (let pings = 0; pings < 5; pings++) {
    const pinged = new Promise((resolve) => socket.once("ping", resolve))
    vi.advanceTimersByTime(250)
    await pinged
    // Answered after the pong that was sent before it.
    socket.send(String(pings))
    expect(await messageOf(socket)).toBe(pings)
  }
  socket.close()
})

test("a connection that reached its longest time is told so and closed", async () => {
  const { begin } = await serve(echo, { lifetimeMs: 30 })
  // Listened to before it is open: its time may be over as soon.
  const socket = begin()
  const closed = closeOf(socket)
  expect(await messageOf(socket)).toMatchObject({
    type: "error",
    status: 400,
    error: { code: "websocket_connection_limit_reached" },
  })
  expect(await closed).toBe(1000)
})

test("who asks is checked again with every message", async () => {
  const { open, revoked } = await serve(echo)
  const socket = await open()
  socket.send("{}")
  expect(await messageOf(socket)).toEqual({})
  revoked.now = true
  socket.send("{}")
  expect(await messageOf(socket)).toMatchObject({
    type: "error",
    status: 401,
    error: { code: "invalid_credentials" },
  })
  socket.close()
})

test("a reader that takes nothing holds its own stream back, and the buffer stays bounded", async () => {
  let made = 0
  const ended = Promise.withResolvers<void>()
  const flood: Conversation = {
    async *answer(_message, { request }) {
      try {
        for (;;) {
          request.signal.throwIfAborted()
          made++
          yield { text: "x".repeat(64 * 1024) }
        }
      } finally {
        ended.resolve()
      }
    },
  }
  const { open } = await serve(flood, { stallMs: 200 })
  const socket = await open()
  socket.pause()
  socket.send("{}")
  // The stall ends the connection, and with it the stream.
  await ended.promise
  expect(made).toBeLessThan(500)
  socket.terminate()
})

test("a turn that does not heed its signal does not hold the stop", async () => {
  const begun = Promise.withResolvers<void>()
  const { open, sockets } = await serve({
    async *answer() {
      begun.resolve()
      await new Promise(() => undefined)
      yield {}
    },
  })
  const socket = await open()
  socket.send("{}")
  await begun.promise
  const closed = closeOf(socket)
  await sockets.close(10)
  expect(await closed).toBe(1001)
})

test("a turn in flight may end when the server stops", async () => {
  const release = Promise.withResolvers<void>()
  const slow: Conversation = {
    async *answer() {
      yield "first"
      await release.promise
      yield "last"
    },
  }
  const { open, sockets } = await serve(slow)
  const socket = await open()
  socket.send("{}")
  expect(await messageOf(socket)).toBe("first")
  const closed = closeOf(socket)
  const stopped = sockets.close(600_000)
  const last = messageOf(socket)
  release.resolve()
  expect(await last).toBe("last")
  expect(await closed).toBe(1001)
  await stopped
})

/** A turn that goes on until the test says so. */
function heldTurn(): { conversation: Conversation; release: () => void; ended: Promise<void> } {
  const released = Promise.withResolvers<void>()
  const ended = Promise.withResolvers<void>()
  return {
    conversation: {
      async *answer(_message, { request }) {
        yield "first"
        await Promise.race([released.promise, once(request.signal, "abort")])
        ended.resolve()
        yield "last"
      },
    },
    release: () => released.resolve(),
    ended: ended.promise,
  }
}

test("four messages during a turn are refused and counted, and the turn goes on; the fifth closes with 1008", async () => {
  const { conversation, release, ended } = heldTurn()
  const { open, taken } = await serve(conversation)
  const socket = await open()
  const messages: unknown[] = []
  socket.on("message", (text: Buffer) => messages.push(JSON.parse(text.toString())))
  socket.send("{}")
  await expect.poll(() => messages).toEqual(["first"])
  // One to open the connection and one for the turn.
  expect(taken.count).toBe(2)
  for (let early = 0; early < 4; early++) socket.send("{}")
  await expect.poll(() => messages).toHaveLength(5)
  expect(messages.slice(1)).toMatchObject(
    Array.from({ length: 4 }, () => ({
      type: "error",
      status: 409,
      error: { code: "response_in_progress" },
    })),
  )
  expect(taken.count).toBe(6)
  expect(socket.readyState).toBe(WebSocket.OPEN)
  const closed = closeOf(socket)
  socket.send("{}")
  expect(await closed).toBe(1008)
  // The turn ends with its connection.
  await ended
  release()
})

test("a turn's end gives its messages back: the next turn may be interrupted as often", async () => {
  const { open } = await serve(echo)
  const socket = await open()
  for (let turn = 0; turn < 20; turn++) {
    socket.send(String(turn))
    expect(await messageOf(socket)).toBe(turn)
  }
  expect(socket.readyState).toBe(WebSocket.OPEN)
})

const usedBytes = (): number => process.memoryUsage().heapUsed + process.memoryUsage().external

/** A frame as a client sends it, masked with zeros. */
const frame = (opcode: number, text: string): Buffer =>
  Buffer.concat([Buffer.from([0x80 | opcode, 0x80 | text.length, 0, 0, 0, 0]), Buffer.from(text)])

test.each([
  ["messages", frame(0x1, "{}")],
  ["pings", frame(0x9, "x".repeat(100))],
])(
  "a flood of %s from a client that reads nothing ends its connection, and memory stays flat",
  async (_, one) => {
    const { conversation } = heldTurn()
    const { port } = await serve(conversation)
    const stream = connect(port, "127.0.0.1")
    const ended = new Promise<void>((resolve) => stream.once("close", () => resolve()))
    stream.on("error", () => undefined)
    stream.write(upgrade)
    await once(stream, "readable")
    const flood = Buffer.concat(Array.from({ length: 1_000 }, () => one))
    const beforeBytes = usedBytes()
    let peakBytes = 0
    for (let sent = 0; sent < 700 && !stream.destroyed; sent++) {
      peakBytes = Math.max(peakBytes, usedBytes() - beforeBytes)
      if (!stream.write(flood)) await Promise.race([once(stream, "drain").catch(() => undefined), ended])
    }
    // Who neither reads nor writes is not told of the end.
    stream.resume()
    await ended
    expect(peakBytes).toBeLessThan(64 * 1024 * 1024)
  },
)

const mebibyte = 1024 * 1024

/** Answers with the size of the message. */
const measure: Conversation = {
  async *answer(message) {
    yield message.length
  },
}
const overCapacity = { type: "error", status: 503, error: { code: "over_capacity" } }

test("messages that are half sent take the budget, the next is refused and closes its connection, and small ones are answered", async () => {
  const bytes = new ByteBudget(16 * mebibyte)
  const { open } = await serve(measure, {}, { bytes })
  // One organization may hold 7 MiB.
  const part = Buffer.alloc(3 * mebibyte, "x")
  const held = [await open(), await open()]
  for (const socket of held) socket.send(part, { fin: false })
  await expect.poll(() => bytes.heldBytes).toBeGreaterThanOrEqual(2 * part.length)
  const refused = await open()
  const [answer, closed] = [messageOf(refused), closeOf(refused)]
  refused.send(part, { fin: false })
  expect(await answer).toMatchObject(overCapacity)
  expect(await closed).toBe(1013)
  const small = await open()
  small.send("small")
  expect(await messageOf(small)).toBe(5)
  for (const socket of held) {
    socket.send("y", { fin: true })
    expect(await messageOf(socket)).toBe(part.length + 1)
  }
  await expect.poll(() => bytes.heldBytes).toBe(0)
  small.send(part)
  expect(await messageOf(small)).toBe(part.length)
})

test("a message that came whole without room is refused alone: its connection goes on", async () => {
  const bytes = new ByteBudget(16 * mebibyte)
  const { open } = await serve(measure, {}, { bytes })
  const socket = await open()
  const others = bytes.lease()
  others.add(16 * mebibyte)
  socket.send("small")
  expect(await messageOf(socket)).toMatchObject(overCapacity)
  others.close()
  socket.send("small")
  expect(await messageOf(socket)).toBe(5)
})

test("an unfinished message of a client that goes away is given back", async () => {
  const bytes = new ByteBudget()
  const { port } = await serve(measure, {}, { bytes })
  const stream = connect(port, "127.0.0.1").on("error", () => undefined)
  const head = Buffer.from([0x81, 0xff, 0, 0, 0, 0, 0, 0x20, 0, 0, 0, 0, 0, 0])
  stream.write(Buffer.concat([Buffer.from(upgrade), head, Buffer.alloc(2 * mebibyte - 1)]))
  await expect.poll(() => bytes.heldBytes).toBeGreaterThanOrEqual(2 * mebibyte - 1)
  stream.resetAndDestroy()
  await expect.poll(() => bytes.heldBytes).toBe(0)
})

test("a message that comes more slowly than a body may closes its connection", async () => {
  const bytes = new ByteBudget()
  const { open } = await serve(measure, {}, { bytes })
  const socket = await open()
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] })
  closers.push(async () => void vi.useRealTimers())
  const [answer, closed] = [messageOf(socket), closeOf(socket)]
  socket.send("x".repeat(100_000), { fin: false })
  await expect.poll(() => bytes.heldBytes).toBeGreaterThanOrEqual(100_000)
  vi.advanceTimersByTime(15_000)
  expect(await answer).toMatchObject({ type: "error", status: 400, error: { code: "invalid_request" } })
  expect(await closed).toBe(1008)
  await expect.poll(() => bytes.heldBytes).toBe(0)
})

test("a client that cannot answer pings amid a frame stays while its bytes come", async () => {
  const bytes = new ByteBudget()
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] })
  closers.push(async () => void vi.useRealTimers())
  const { port } = await serve(measure, { pingMs: 250 }, { bytes })
  const stream = connect(port, "127.0.0.1")
  stream.write(Buffer.concat([Buffer.from(upgrade), Buffer.from([0x81, 0xfe, 0x0f, 0xa0, 0, 0, 0, 0])]))
  for (let sentBytes = 1_000; sentBytes < 4_000; sentBytes += 1_000) {
    stream.write(Buffer.alloc(1_000))
    // Polls of vitest are intervals, which stand still here.
    while (bytes.heldBytes < sentBytes) await wait(5)
    vi.advanceTimersByTime(250)
  }
  stream.write(Buffer.alloc(1_000))
  let answer = ""
  stream.on("data", (part: Buffer) => (answer += part.toString("latin1")))
  while (!answer.includes("4000")) await wait(5)
  stream.destroy()
})

test("a message of 8 MiB is answered, and one of a byte more closes its connection with 1009", async () => {
  const bytes = new ByteBudget()
  const { open } = await serve(measure, {}, { bytes })
  const socket = await open()
  socket.send(Buffer.alloc(8 * mebibyte))
  expect(await messageOf(socket)).toBe(8 * mebibyte)
  const closed = closeOf(socket)
  socket.send(Buffer.alloc(8 * mebibyte + 1))
  expect(await closed).toBe(1009)
  await expect.poll(() => bytes.heldBytes).toBe(0)
})
