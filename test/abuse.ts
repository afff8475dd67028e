/**
 * Hostile bodies for every endpoint of the table, made from its schema: none is a failure of the server, nothing large is read on
 * its event loop, and it answers others all the while. How long they stall it is measured by `npm run abuse`.
 */
import { afterAll, beforeAll, expect, test } from "vitest"
import { type HostileBody, hostileBodies } from "../bench/abuse/bodies.ts"
import {
  type Target,
  attacked,
  bodiless,
  callerOf,
  manners,
  misbehave,
  openTarget,
  refusalsOf,
  send,
  sendHead,
  statusOf,
} from "../bench/abuse/target.ts"
import { mapConcurrent } from "../src/base/lists.ts"
import { threadBytesMin } from "../src/base/peer/threads.ts"
import type { Endpoint } from "../src/contract/endpoint.ts"
import { type TestServer, startServer } from "./server.ts"

/** It is busy or full, says so and says when to come again. */
const busy = [503, 507]
const isFailure = (status: number | null): boolean =>
  status !== null && status >= 500 && !busy.includes(status)

/** The largest bodies have so many bytes. */
export function abuseTests(bytes: number): void {
  let server: TestServer
  let target: Target

  beforeAll(async () => {
    const env = { UMPIRE_LIMITS_REQUESTS_PER_MINUTE: "10000000", UMPIRE_LIMITS_BURST: "1000000" }
    server = await startServer({ env })
    target = await openTarget(server)
  })

  afterAll(async () => await server.stop())

  test.each(attacked)("%s refuses hostile bodies, and others are answered", async (_, endpoint) => {
    expect(await attack(target, endpoint, hostileBodies(endpoint, bytes, false))).toEqual([])
    expect((await fetch(`${server.url}/healthz`)).status).toBe(200)
  })

  test("endpoints without a body take none", async () => {
    const body = { kind: "a body", contentType: "application/json", text: `"${"a".repeat(bytes)}"` }
    const failed = await mapConcurrent(bodiless, { concurrency: 8 }, async ([name, endpoint]) => {
      const found = await attack(target, endpoint, [body])
      return found.map((failure) => `${name}, ${failure}`)
    })
    expect(failed.flat()).toEqual([])
  })

  /** That the answer comes at all says that the body was not waited for. */
  test.each([...attacked, ...bodiless])("%s is refused before its body comes", async (_, endpoint) => {
    const refusals = refusalsOf(endpoint, target)
    const answered = await Promise.all(
      refusals.map(async (refusal) => ({ lacks: refusal.lacks, status: await statusOf(refusal, sendHead) })),
    )
    expect(answered).toEqual(refusals.map(({ lacks, status }) => ({ lacks, status })))
  })

  test("nothing of all that was read on the event loop", async () => {
    const text = await (await fetch(`${server.url}/metrics`)).text()
    const [, largest] = /^umpire_event_loop_largest_read_bytes (\d+)/m.exec(text) ?? []
    expect(Number(largest)).toBeGreaterThan(1000)
    expect(Number(largest)).toBeLessThan(threadBytesMin)
  })
}

/** Returns what failed, of each body once and of all manners with the first. */
async function attack(target: Target, endpoint: Endpoint, bodies: readonly HostileBody[]): Promise<string[]> {
  const sending = { target, endpoint, bearer: callerOf(endpoint, target) }
  const statuses: [string, number | null][] = []
  for (const body of bodies) statuses.push([body.kind, await send(sending, body)])
  const [first] = bodies
  if (first) {
    for (const [manner, status] of await Promise.all(
      manners.map(async (manner) => [manner, await misbehave(sending, first, manner)] as const),
    ))
      statuses.push([manner, status])
    for (const refusal of refusalsOf(endpoint, target)) {
      const answered = await statusOf(refusal, async (by) => await send(by, first))
      if (answered !== refusal.status) return [`without ${refusal.lacks}: ${answered}, not ${refusal.status}`]
    }
  }
  return statuses.filter(([, status]) => isFailure(status)).map(([kind, status]) => `${kind}: ${status}`)
}
