import { createServer } from "node:http"
import { type AddressInfo, connect } from "node:net"
import { afterEach, expect, test } from "vitest"
import { WebSocket } from "ws"
import { noProxies } from "../base/addresses.ts"
import { systemClock } from "../base/clock.ts"
import { createIds } from "../base/ids.ts"
import { silentLog } from "../base/log.ts"
import { openResponseSocket } from "../contract/openai/endpoints.ts"
import { openAccess } from "../../test/open-access.ts"
import { type Conversation, type WebSocketTimes, createWebSockets } from "./websocket.ts"

const closers: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0)) await close()
})

async function serve(conversation: Conversation, times: Partial<WebSocketTimes> = {}) {
  const revoked = { now: false }
  const sockets = createWebSockets(
    { endpoint: openResponseSocket, converse: () => conversation, times },
    {
      ...openAccess(() => !revoked.now),
      clock: systemClock,
      ids: createIds(),
      log: silentLog,
      requestTimeoutMs: 60_000,
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
  const open = async (): Promise<WebSocket> => {
    const socket = new WebSocket(`ws://127.0.0.1:${port}/v1/responses`, {
      headers: { authorization: "Bearer key" },
    })
    await new Promise((resolve, reject) => socket.once("open", resolve).once("error", reject))
    return socket
  }
  return { port, open, revoked, sockets }
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

test("a connection whose client answers no ping is ended", async () => {
  const { port } = await serve(echo, { pingMs: 20 })
  // A bare TCP client that shakes hands and then stays silent, like a machine that lost its network.
  const stream = connect(port, "127.0.0.1")
  const ended = new Promise<void>((resolve) => stream.once("close", () => resolve()))
  stream.on("error", () => undefined).on("data", () => undefined)
  stream.write(
    "GET /v1/responses HTTP/1.1\r\nhost: x\r\nupgrade: websocket\r\nconnection: upgrade\r\nauthorization: Bearer key\r\n" +
      "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-version: 13\r\n\r\n",
  )
  await ended
})

test("a connection that answers pings stays", async () => {
  const { open } = await serve(echo, { pingMs: 250 })
  const socket = await open()
  for (let pings = 0; pings < 5; pings++) await new Promise((resolve) => socket.once("ping", resolve))
  socket.send('{"a":1}')
  expect(await messageOf(socket)).toEqual({ a: 1 })
  socket.close()
})

test("a connection that reached its longest time is told so and closed", async () => {
  const { open } = await serve(echo, { lifetimeMs: 30 })
  const socket = await open()
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
  const stopped = sockets.close(10_000)
  const last = messageOf(socket)
  release.resolve()
  expect(await last).toBe("last")
  expect(await closed).toBe(1001)
  await stopped
})
