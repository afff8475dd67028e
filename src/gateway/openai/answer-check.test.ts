import { expect, test } from "vitest"
import type { GenerateWork, GenerationEvent } from "../../engine/generate/generate.ts"
import { checked } from "./answer-check.ts"

const signal = new AbortController().signal

/** What is looked at of a request: its schemas. */
const work = (strict: boolean): GenerateWork =>
  ({
    organizationId: "org",
    tools: [],
    format: { kind: "json_schema", name: "n", strict, schema: { type: "integer", maximum: 3 } },
  }) as unknown as GenerateWork

async function* answer(text: string, reason: "stop" | "length"): AsyncGenerator<GenerationEvent> {
  yield { kind: "text", text, logprobs: null }
  yield { kind: "end", reason }
}

test.each([
  ["3", true, "stop", null],
  ["4", true, "stop", /must be <= 3/],
  ["oh", true, "stop", /not JSON/],
  ["4", true, "length", null],
  ["4", false, "stop", null],
] as const)(
  "a worker's answer %s to a schema that is strict: %s, ended by %s",
  async (text, strict, reason, found) => {
    const kinds: string[] = []
    const read = async (): Promise<void> => {
      for await (const event of checked(answer(text, reason), work(strict), signal)) kinds.push(event.kind)
    }
    if (found) await expect(read()).rejects.toThrow(found)
    else await read()
    expect(kinds).toEqual(found ? ["text"] : ["text", "end"])
  },
)
