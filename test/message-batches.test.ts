/** Anthropic's Message Batches with its own client: created, waited for, read, cancelled, deleted; and what is refused. */
import Anthropic from "@anthropic-ai/sdk"
import { afterAll, beforeAll, expect, test } from "vitest"
import { type AgentsScene, openAgentsScene } from "./agents-scene.ts"
import { readRecords } from "./gateways.ts"
import { makeOrganization } from "./operator.ts"

let scene: AgentsScene
beforeAll(async () => {
  scene = await openAgentsScene(({ messages }) => ({ text: `You said ${messages.at(-1)?.content ?? ""}` }))
})
afterAll(async () => {
  await scene.close()
})

const client = (apiKey = scene.server.key): Anthropic =>
  new Anthropic({ apiKey, baseURL: scene.server.url, maxRetries: 0 })

const ask = (content: string, more: object = {}) => ({
  model: "far",
  max_tokens: 20,
  messages: [{ role: "user" as const, content }],
  ...more,
})

async function ended(id: string): Promise<Anthropic.Messages.MessageBatch> {
  const read = async () => await client().messages.batches.retrieve(id)
  await expect.poll(async () => (await read()).processing_status).toBe("ended")
  return await read()
}

test("each request is answered, or says why not, and is charged and recorded as a line of a batch", async () => {
  const requests = [
    { custom_id: "good", params: ask("hello") },
    { custom_id: "unknown", params: ask("hello", { model: "nobody" }) },
    { custom_id: "wrong", params: ask("hello", { temperature: 2 }) },
  ]
  const begun = await client().messages.batches.create({ requests })
  expect(begun).toMatchObject({ type: "message_batch", results_url: null, archived_at: null })
  const batch = await ended(begun.id)
  expect(batch.request_counts).toEqual({ processing: 0, succeeded: 1, errored: 2, canceled: 0, expired: 0 })
  expect(batch.results_url).toBe(`${scene.server.url}/v1/messages/batches/${batch.id}/results`)
  const results = new Map<string, Anthropic.Messages.MessageBatchResult>()
  for await (const { custom_id, result } of await client().messages.batches.results(batch.id))
    results.set(custom_id, result)
  expect(results.get("good")).toMatchObject({
    type: "succeeded",
    message: { type: "message", content: [{ type: "text", text: "You said hello" }] },
  })
  expect(results.get("unknown")).toMatchObject({
    type: "errored",
    error: { type: "error", error: { type: "not_found_error" } },
  })
  expect(results.get("wrong")).toMatchObject({ error: { error: { type: "invalid_request_error" } } })
  const records = await readRecords(scene.server.dataDirectory)
  expect(
    records.filter(({ call_source, result }) => call_source === "messages" && result === "success"),
  ).toHaveLength(1)
})

test("batches are listed, cancelled, and deleted with their results once they have ended", async () => {
  const made = []
  for (const custom_id of ["a", "b"])
    made.push(await client().messages.batches.create({ requests: [{ custom_id, params: ask("hello") }] }))
  const [first, second] = made
  const listed: string[] = []
  for await (const { id } of client().messages.batches.list({ limit: 1 })) listed.push(id)
  expect(listed.slice(0, 2)).toEqual([second?.id, first?.id])
  const id = second?.id ?? ""
  await client()
    .messages.batches.cancel(id)
    .catch((error: unknown) => expect(error).toMatchObject({ status: 409 }))
  await ended(id)
  expect(await client().messages.batches.delete(id)).toEqual({ id, type: "message_batch_deleted" })
  await expect(client().messages.batches.retrieve(id)).rejects.toBeInstanceOf(Anthropic.NotFoundError)
  const files = await fetch(`${scene.server.url}/v1/files`, {
    headers: { authorization: `Bearer ${scene.server.key}` },
  })
  expect(JSON.stringify(await files.json())).not.toContain(id)
})

test("another organization sees none of them", async () => {
  const { id } = await client().messages.batches.create({ requests: [{ custom_id: "a", params: ask("x") }] })
  const { secret } = await makeOrganization(scene.server, { name: "Other", owner: "other@example.com" })
  const other = client(secret).messages.batches
  await expect(other.retrieve(id)).rejects.toMatchObject({ status: 404 })
  await expect(other.cancel(id)).rejects.toMatchObject({ status: 404 })
  await expect(other.delete(id)).rejects.toMatchObject({ status: 404 })
})

test.each<[string, Anthropic.Messages.BatchCreateParams.Request[], RegExp]>([
  ["no requests", [], /requests/],
  ["an id twice", ["a", "a"].map((custom_id) => ({ custom_id, params: ask("x") })), /same custom_id/],
  ["an id of 65 characters", [{ custom_id: "a".repeat(65), params: ask("x") }], /custom_id/],
  ["a stream", [{ custom_id: "a", params: ask("x", { stream: true }) }], /stream/],
])("%s is refused at once", async (_, requests, message) => {
  await expect(client().messages.batches.create({ requests })).rejects.toMatchObject({
    status: 400,
    message: expect.stringMatching(message) as string,
  })
})
