import { mkdtemp, rm } from "node:fs/promises"
import { type Socket, createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect, test } from "vitest"
import { operateOverSocket } from "./operator.ts"

/** What an operation answers when the server does this with the connection once it was asked. */
async function asked(serve: (socket: Socket) => void): Promise<unknown> {
  const directory = await mkdtemp(join(tmpdir(), "umpire-operator-"))
  const address = join(directory, "socket")
  const server = createServer((socket) => socket.once("data", () => serve(socket)))
  await new Promise<void>((resolve) => server.listen(address, resolve))
  try {
    return await operateOverSocket(address, "keys.create", {})
  } finally {
    server.close()
    await rm(directory, { recursive: true })
  }
}

test.each([
  ["without a word", (socket: Socket) => socket.end()],
  ["in the middle of its answer", (socket: Socket) => socket.end('{"result":{"id":"ke')],
])("a server that goes away %s is told as such", async (_when, serve) => {
  await expect(asked(serve)).rejects.toThrow("the server stopped before it answered")
})

test("a whole answer is the result, and nobody listening is no answer", async () => {
  expect(await asked((socket) => socket.end('{"result":1}\n'))).toEqual({ result: 1 })
  expect(await operateOverSocket(join(tmpdir(), "umpire-no-such-socket"), "keys.create", {})).toBeUndefined()
})
