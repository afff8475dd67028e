/**
 * Hostile bodies for every endpoint of the table, made from its schema: none is a failure of the server, and it answers others
 * all the while. How long they stall it is measured by `npm run abuse`.
 */
import { afterAll, beforeAll, expect, test } from "vitest"
import { hostileBodies } from "../bench/abuse/bodies.ts"
import { type Target, attacked, manners, misbehave, openTarget, send } from "../bench/abuse/target.ts"
import { type TestServer, startServer } from "./server.ts"

const bytes = 1024 * 1024
/** It is busy or full, says so and says when to come again. */
const busy = [503, 507]

let server: TestServer
let target: Target

beforeAll(async () => {
  const env = { UMPIRE_LIMITS_REQUESTS_PER_MINUTE: "10000000", UMPIRE_LIMITS_BURST: "1000000" }
  server = await startServer({ env })
  target = await openTarget(server)
})

afterAll(async () => await server.stop())

test.each(attacked)("%s refuses hostile bodies, and others are answered", async (_, endpoint) => {
  const failed: string[] = []
  const bodies = hostileBodies(endpoint, bytes, false)
  for (const body of bodies) {
    const status = await send(target, endpoint, body)
    if (status >= 500 && !busy.includes(status)) failed.push(`${body.kind}: ${status}`)
  }
  const [first] = bodies
  if (first)
    await Promise.all(
      manners.map(async (manner) => {
        const status = await misbehave(target, endpoint, first, manner)
        if (status !== null && status >= 500 && !busy.includes(status)) failed.push(`${manner}: ${status}`)
      }),
    )
  expect(failed).toEqual([])
  expect((await fetch(`${server.url}/healthz`)).status).toBe(200)
})
