/**
 * Hostile bodies for every endpoint of the table, made from its schema: none is a failure of the server, nothing large is read on
 * its event loop, and it answers others all the while. How long they stall it is measured by `npm run abuse`.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { afterAll, beforeAll, expect, test, vi } from "vitest"
import { type HostileBody, hostileBodies } from "../bench/abuse/bodies.ts"
import {
  type Target,
  allowed,
  attacked,
  bodiless,
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

const largeBytes = 8 * 1024 * 1024

/** The largest bodies have so many bytes. */
export function abuseTests(bytes: number): void {
  let server: TestServer
  let target: Target
  const directory = mkdtempSync(join(tmpdir(), "umpire-abuse-"))
  const collectionsFile = join(directory, "collections")

  beforeAll(async () => {
    const env = {
      COLLECTION_MONITOR_FILE: collectionsFile,
      NODE_OPTIONS: `--import ${pathToFileURL(join(import.meta.dirname, "collection-monitor.ts")).href}`,
      UMPIRE_LIMITS_REQUESTS_PER_MINUTE: "10000000",
      UMPIRE_LIMITS_BURST: "1000000",
    }
    server = await startServer({ env })
    target = await openTarget(server)
  })

  afterAll(async () => {
    await server.stop()
    await target.close()
    rmSync(directory, { recursive: true })
  })

  async function collections(): Promise<number> {
    rmSync(collectionsFile, { force: true })
    server.process.kill("SIGUSR2")
    await vi.waitFor(() =>
      expect(existsSync(collectionsFile) && readFileSync(collectionsFile, "utf8")).toMatch(/\n$/),
    )
    return Number(readFileSync(collectionsFile, "utf8"))
  }

  // Every third did so when their buffers were left to the collector: processor time that others wait for.
  test("large bodies seldom begin a full garbage collection", async () => {
    const body = Buffer.from(`{"model":"umpire-chat","messages":[${"{},".repeat(largeBytes / 3)}{}]}`)
    const post = async (): Promise<number> => {
      const response = await fetch(`${server.url}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${target.keys.inference}`, "content-type": "application/json" },
        body,
      })
      await response.text()
      return response.status
    }
    const before = await collections()
    for (let sent = 0; sent < 40; sent++) expect(await post()).toBe(400)
    expect((await collections()) - before).toBeLessThanOrEqual(4)
  })

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
  const sending = allowed(endpoint, target)
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
