import { mkdtemp, rm } from "node:fs/promises"
import { createConnection } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { text } from "node:stream/consumers"
import { afterEach, beforeEach, expect, test } from "vitest"
import { silentLog } from "../base/log.ts"
import { openOperatorSocket, operatorAddress } from "./operator-socket.ts"

/** Longer than a busy machine takes to read a line that was sent at once. */
const idleTimeoutMs = 15_000

let directory: string

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "umpire-operator-"))
})
afterEach(() => rm(directory, { recursive: true, force: true }))

test("a connection that says nothing is closed, and an operation may take longer than that", async () => {
  const address = operatorAddress(directory)
  const finish = Promise.withResolvers<string>()
  const started = Promise.withResolvers<void>()
  const operations = {
    import: async () => {
      started.resolve()
      return await finish.promise
    },
  }
  const server = await openOperatorSocket(address, operations, silentLog, idleTimeoutMs)
  const asking = createConnection(address)
  const answered = text(asking)
  asking.write('{"operation":"import"}\n')
  await started.promise
  // Opened after the first, and closed for its silence: the first has been silent for longer.
  expect(await text(createConnection(address))).toBe("")
  finish.resolve("done")
  expect(await answered).toBe('{"result":"done"}\n')
  await server.close()
})
