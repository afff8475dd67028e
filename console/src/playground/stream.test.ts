import { expect, test } from "vitest"
import { eventsOf, lines } from "./stream.ts"

async function all(stream: ReadableStream<Uint8Array<ArrayBuffer>>): Promise<string[]> {
  const found: string[] = []
  for await (const line of lines(stream)) found.push(line)
  return found
}

function streamOf(...pieces: string[]): ReadableStream<Uint8Array<ArrayBuffer>> {
  return new ReadableStream({
    start(controller) {
      for (const piece of pieces) controller.enqueue(new TextEncoder().encode(piece))
      controller.close()
    },
  })
}

test("lines are whole however the network cuts them, also inside a character", async () => {
  const bytes = new TextEncoder().encode("data: é\ndata: 2\n\nlast")
  const cut = new ReadableStream<Uint8Array<ArrayBuffer>>({
    start(controller) {
      controller.enqueue(bytes.slice(0, 7))
      controller.enqueue(bytes.slice(7))
      controller.close()
    },
  })
  expect(await all(cut)).toEqual(["data: é", "data: 2", "", "last"])
  expect(await all(streamOf("a", "b\nc"))).toEqual(["ab", "c"])
})

test("a chunk tells its text, its end and its usage", () => {
  expect([
    ...eventsOf({
      choices: [{ delta: { content: "Hi" }, finish_reason: "stop" }],
      usage: { prompt_tokens: 3, completion_tokens: 1 },
    }),
  ]).toEqual([
    { kind: "text", text: "Hi" },
    { kind: "end", reason: "stop" },
    { kind: "usage", inputTokens: 3, outputTokens: 1 },
  ])
})

test("an error in the stream is thrown in its own words", () => {
  expect(() => [...eventsOf({ error: { message: "The engine failed" } })]).toThrow("The engine failed")
})
