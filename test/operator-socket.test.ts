import { chmod, mkdtemp, rm } from "node:fs/promises"
import { createConnection } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { text } from "node:stream/consumers"
import { afterEach, beforeEach, expect, onTestFinished, test } from "vitest"
import { systemClock } from "../src/base/clock.ts"
import { createIds } from "../src/base/ids.ts"
import { silentLog } from "../src/base/log.ts"
import { connectOperator } from "../src/cli/operator.ts"
import type { Call, Handlers } from "../src/contract/endpoint.ts"
import { Fault } from "../src/contract/errors.ts"
import type { OperatorTable } from "../src/contract/operator.ts"
import { openOperatorSocket, operatorAddress, operatorGate } from "../src/server/operator-socket.ts"

/** Longer than a busy machine takes to read a request that was sent at once. */
const idleTimeoutMs = 15_000
const unprivilegedId = 65_534

let directory: string

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "umpire-operator-"))
})
afterEach(() => rm(directory, { recursive: true, force: true }))

const never = async (): Promise<never> => {
  throw new Error("it was called")
}

async function open(handlers: Partial<Handlers<OperatorTable>>) {
  const address = operatorAddress(directory)
  const server = await openOperatorSocket(address, {
    // A test calls those that it brings.
    handlers: handlers as Handlers<OperatorTable>,
    gate: operatorGate(async (organizationId) => {
      if (organizationId !== "org_1") throw new Fault("not_found", "Cannot find the organization")
      return { organizationId, role: "primary_owner", permissions: ["api-admin"] }
    }),
    clock: systemClock,
    ids: createIds(),
    log: silentLog,
    idleTimeoutMs,
  })
  const operator = await connectOperator(address)
  if (!operator) throw new Error("nothing listens")
  return { address, server, client: operator.client }
}

test("a connection that says nothing is closed, and a request may take longer than that", async () => {
  const finish = Promise.withResolvers<{ events: number }>()
  const started = Promise.withResolvers<void>()
  const { address, server, client } = await open({
    importEvents: async () => {
      started.resolve()
      return await finish.promise
    },
  })
  const answered = client.importEvents({ body: { file: "events.jsonl" } })
  await started.promise
  // Opened after the first, and closed for its silence: the first has been silent for longer.
  expect(await text(createConnection(address))).not.toContain("200")
  finish.resolve({ events: 1 })
  expect(await answered).toEqual({ events: 1 })
  await server.close()
})

test("every caller is the operator, an owner in every organization; its input is checked by the table", async () => {
  const seen: Pick<Call, "principal" | "membership">[] = []
  const { server, client } = await open({
    deleteApiKey: async ({ principal, membership }) => void seen.push({ principal, membership }),
    createApiKey: never,
    getStatus: async () => {
      throw new TypeError("the disk is odd")
    },
  })
  await client.deleteApiKey({ params: { org_id: "org_1", key_id: "key_1" } })
  expect(seen).toMatchObject([
    { principal: { kind: "operator" }, membership: { organizationId: "org_1", role: "primary_owner" } },
  ])
  const body = { name: "", permissions: [] }
  await expect(client.createApiKey({ params: { org_id: "org_1" }, body })).rejects.toMatchObject({
    code: "invalid_body",
  })
  const elsewhere = { org_id: "org_2", key_id: "key_1" }
  await expect(client.deleteApiKey({ params: elsewhere })).rejects.toMatchObject({ code: "not_found" })
  // The operator is told what went wrong inside.
  await expect(client.getStatus()).rejects.toThrow("the disk is odd")
  await server.close()
})

/** Only root can become another user. */
test.runIf(process.getuid?.() === 0)(
  "another user is refused with a sentence, also where the directory is open to all",
  async () => {
    const { address, server } = await open({ getStatus: never })
    onTestFinished(async () => await server.close())
    const asNobody = async (): Promise<unknown> => {
      process.seteuid?.(unprivilegedId)
      try {
        return await connectOperator(address).catch((error: unknown) => error)
      } finally {
        process.seteuid?.(0)
      }
    }
    for (const mode of [0o700, 0o755]) {
      await chmod(directory, mode)
      expect(await asNobody()).toMatchObject({
        code: "permission_denied",
        message: expect.stringContaining("its data directory belongs to another user") as string,
      })
    }
    // Its owner, who is root here, goes on.
    expect(await connectOperator(address)).not.toBeNull()
  },
)
