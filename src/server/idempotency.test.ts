import { expect, test } from "vitest"
import { silentLog } from "../base/log.ts"
import type { Membership } from "../contract/access.ts"
import { createDecision } from "../contract/classification.ts"
import { EncodedJson, type IdempotentAnswer, type IdempotentRun } from "../contract/endpoint.ts"
import { type IdempotencyStore, idempotentRequest, repeatableFacts, runIdempotent } from "./idempotency.ts"

const claimedMs = 1_800_000_000_000

/** Keeps one answer, as the database does. */
class KeptAnswer implements IdempotencyStore {
  kept: IdempotentAnswer | null = null

  async claim(_: unknown, mayBegin: boolean) {
    return this.kept ?? (mayBegin ? { attemptId: "req_1", claimedMs } : null)
  }

  seal(_: unknown, body: string): string {
    return body
  }

  async complete(run: IdempotentRun, output: unknown): Promise<void> {
    this.kept = run.encode(output)
  }

  async release(): Promise<void> {
    this.kept = null
  }
}

const facts = {
  id: "req",
  ip: "",
  userAgent: null,
  startedMs: claimedMs + 120_000,
  header: () => "key",
  signal: new AbortController().signal,
}

async function requestFor(organizationId: string) {
  const request = await idempotentRequest(
    "key",
    {
      endpoint: createDecision,
      principal: { kind: "session", id: "ses_1" } as never,
      path: "/v1/decisions",
      body: Buffer.from("{}"),
    },
    { membership: { organizationId } as Membership },
  )
  if (!request) throw new Error("the request has no key")
  return request
}

/** What a client gets: the body and the headers. */
async function ask(store: IdempotencyStore, hasRowSpace: (bytes: number) => boolean = () => true) {
  const headers: Record<string, string> = {}
  const header = (name: string, value: string): void => void (headers[name] = value)
  const parts = { endpoint: createDecision, header, log: silentLog }
  const output = await runIdempotent(await requestFor("org_a"), parts, {
    store,
    hasRowSpace,
    work: async (_, set) => {
      set("x-umpire-sequence", "seq_1")
      set("x-umpire-abstained", "rude")
      return new EncodedJson('{"answers":[]}')
    },
  })
  return { output, headers }
}

test("the same key of one session for another organization is another request", async () => {
  const { scope } = await requestFor("org_a")
  expect((await requestFor("org_b")).scope).not.toBe(scope)
  expect((await requestFor("org_a")).scope).toBe(scope)
})

test("a repeated classification has the headers of the first, so that an abstention stays one", async () => {
  const store = new KeptAnswer()
  const first = await ask(store)
  const second = await ask(store)
  expect(first.headers).toEqual({ "x-umpire-sequence": "seq_1", "x-umpire-abstained": "rude" })
  expect(second).toEqual({
    output: first.output,
    headers: { ...first.headers, "idempotent-replayed": "true" },
  })
})

test("an answer that is charged is sent also when it cannot be kept", async () => {
  const store = new KeptAnswer()
  store.complete = () => Promise.reject(new Error("the database is gone"))
  expect((await ask(store)).output).toEqual(new EncodedJson('{"answers":[]}'))
})

test("without room on the disk a new request is refused before it runs, and a repeated one is answered", async () => {
  const store = new KeptAnswer()
  await expect(ask(store, () => false)).rejects.toMatchObject({ code: "storage_full", status: 507 })
  expect(store.kept).toBeNull()
  const first = await ask(store)
  expect((await ask(store, () => false)).output).toEqual(first.output)
})

test("an answer that is charged and has no room on the disk is sent, and not kept", async () => {
  const store = new KeptAnswer()
  const { output } = await ask(store, (bytes) => bytes <= "{}".length)
  expect([output, store.kept]).toEqual([new EncodedJson('{"answers":[]}'), null])
})

test("an attempt that takes over is charged at the time of the first, and began when it began", async () => {
  const run = { scope: "", key: "", attemptId: "", claimedMs, encode: () => neverEncoded() }
  expect(repeatableFacts(facts, await requestFor("org_a"), run)).toMatchObject({
    startedMs: claimedMs + 120_000,
    chargedMs: claimedMs,
  })
})

function neverEncoded(): never {
  throw new Error("nothing is encoded here")
}
