import { expect, test } from "vitest"
import type { GenerateWork, GenerationEvent, JsonObject } from "../../engine/engine.ts"
import { plainWork } from "../../../test/plain-work.ts"
import { checked } from "./answer-check.ts"

const signal = new AbortController().signal

const work = (strict: boolean, schema: JsonObject = { type: "integer", maximum: 3 }): GenerateWork =>
  plainWork({ format: { kind: "json_schema", name: "n", strict, schema } })

/** Each definition refers to the next one twice: 2 ** 40 checks of one value. */
const doubling: JsonObject = {
  $ref: "#/$defs/d0",
  $defs: Object.fromEntries([
    ...Array.from({ length: 40 }, (_, index) => [
      `d${index}`,
      { allOf: [{ $ref: `#/$defs/d${index + 1}` }, { $ref: `#/$defs/d${index + 1}` }] },
    ]),
    ["d40", { type: "integer" }],
  ]),
}

const readAll = async (text: string, schema: JsonObject): Promise<void> => {
  for await (const _ of checked(answer(text, "stop"), work(true, schema), signal));
}

test("a schema whose references double is given up, and its thread checks the next answer", async () => {
  await expect(readAll("3", doubling)).rejects.toThrow(
    /could not be checked against the strict schema: the check takes more than 5000 ms/,
  )
  await readAll("3", { type: "integer" })
})

test("the limits of draft 4 are checked", async () => {
  const above = { type: "number", minimum: 3, exclusiveMinimum: true }
  await readAll("4", above)
  await expect(readAll("3", above)).rejects.toThrow("did not keep to the strict schema")
})

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
