import { mkdtemp, rm } from "node:fs/promises"
import { type Socket, createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect, test } from "vitest"
import { connectOperator } from "./operator.ts"

/** What a request is answered when the server does this with the connection once it was asked. */
async function asked(serve: (socket: Socket) => void): Promise<unknown> {
  const directory = await mkdtemp(join(tmpdir(), "umpire-operator-"))
  const address = join(directory, "socket")
  const server = createServer((socket) => socket.once("data", () => serve(socket)))
  await new Promise<void>((resolve) => server.listen(address, resolve))
  try {
    return await (await connectOperator(address))?.client.listUsers()
  } finally {
    server.close()
    await rm(directory, { recursive: true })
  }
}

const head = "HTTP/1.1 200 OK\r\ncontent-length: 11\r\n\r\n"

test.each([
  ["without a word", (socket: Socket) => socket.end()],
  ["in the middle of its answer", (socket: Socket) => socket.end(`${head}{"data"`)],
])("a server that goes away %s is told as such", async (_when, serve) => {
  await expect(asked(serve)).rejects.toThrow("the server stopped before it answered")
})

test("a whole answer is the result, and where nothing listens there is no connection", async () => {
  expect(await asked((socket) => socket.end(`${head}{"data":[]}`))).toEqual([])
  expect(await connectOperator(join(tmpdir(), "umpire-no-such-socket"))).toBeNull()
})
