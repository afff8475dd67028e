import { describe, expect, test } from "vitest"
import { Fault } from "../../contract/errors.ts"
import { itemsMax, partsMax, textCharactersMax } from "../../contract/openai/limits.ts"
import { threadBytesMin } from "../../base/peer/threads.ts"
import { type Wire, createBodyReader, readBody } from "./body.ts"
import { checkJsonBounds, standardBounds } from "../../base/json.ts"

const bytesOf = (value: unknown): Uint8Array =>
  new TextEncoder().encode(typeof value === "string" ? value : JSON.stringify(value))

const outcomeOf = (wire: Wire, value: unknown) => readBody({ wire, bytes: bytesOf(value) }).outcome

const chat = (messages: unknown) => ({ model: "m", messages })
const responses = (input: unknown) => ({ model: "m", input })
const user = (content: unknown) => ({ role: "user", content })
const text = { type: "text", text: "a" }
const many = <Value>(count: number, value: Value): Value[] => Array.from({ length: count }, () => value)

describe("a list at its limit is read, and one past it is refused before its items are looked at", () => {
  test.each([
    ["messages", "chat_completions", (count: number) => chat(many(count, user("a"))), itemsMax, "messages"],
    [
      "content parts",
      "chat_completions",
      (count: number) => chat([user(many(count, text))]),
      partsMax,
      "messages.0.content",
    ],
    ["input items", "responses", (count: number) => responses(many(count, user("a"))), itemsMax, "input"],
    [
      "texts to embed",
      "embeddings",
      (count: number) => ({ model: "m", input: many(count, "a") }),
      2048,
      "input",
    ],
  ] as const)("%s", (_, wire, body, max, param) => {
    expect(outcomeOf(wire, body(max))).toHaveProperty("request")
    expect(outcomeOf(wire, body(max + 1))).toMatchObject({ code: "invalid_request", param })
  })

  test("items past the limit are not looked at", () => {
    const items = Array.from({ length: itemsMax + 1 }, () => user("a"))
    Object.defineProperty(items, 0, {
      get: () => {
        throw new Error("an item was looked at")
      },
    })
    const parsed = outcomeOfValue("responses", responses(items))
    expect(parsed).toBe("invalid_request")
  })
})

describe("text that no model reads is refused before it is handed over", () => {
  const half = "a".repeat((textCharactersMax - 100) / 2)
  /** Two messages whose text has so many characters with all else that is text. */
  const messages = (characters: number) => {
    const rest = characters - 2 * half.length - "m".length - 2 * "user".length
    return chat([user(half), user(half + "a".repeat(rest))])
  }
  test("the most is read, and one more is not", () => {
    expect(outcomeOf("chat_completions", messages(textCharactersMax))).toHaveProperty("request")
    expect(outcomeOf("chat_completions", messages(textCharactersMax + 1))).toMatchObject({
      code: "context_length_exceeded",
      message: expect.stringContaining(`${textCharactersMax + 1} characters`),
    })
  })
  test("images and files are no text", () => {
    const image = { type: "image_url", image_url: { url: half } }
    expect(outcomeOf("chat_completions", chat([user([image, image, image])]))).toHaveProperty("request")
  })
})

/** Checks a value that never was JSON, so that a getter can tell who reads it. */
function outcomeOfValue(wire: Wire, value: unknown): string {
  const parse = JSON.parse
  JSON.parse = () => value
  try {
    const outcome = readBody({ wire, bytes: bytesOf("{}") }).outcome
    return "code" in outcome ? outcome.code : "accepted"
  } finally {
    JSON.parse = parse
  }
}

describe("the first wrong item ends the check and is named", () => {
  test.each([
    ["an empty item", "responses", responses([user("a"), {}, {}]), "input.1.id"],
    ["an item of an unknown type", "responses", responses([{ type: "image" }]), "input.0"],
    ["a message without content", "responses", responses([{ role: "user" }]), "input.0.content"],
    [
      "a part of another kind",
      "responses",
      responses([user([{ type: "input_audio" }])]),
      "input.0.content.0",
    ],
    ["a wrong message", "chat_completions", chat([user("a"), {}]), "messages.1.role"],
    ["a wrong part", "chat_completions", chat([user([text, {}])]), "messages.0.content.1"],
    ["an empty list to embed", "embeddings", { model: "m", input: [[]] }, "input.0"],
    ["a mixed list to embed", "embeddings", { model: "m", input: ["a", 1] }, "input.1"],
  ] as const)("%s", (_, wire, body, param) => {
    expect(outcomeOf(wire, body)).toMatchObject({ code: "invalid_request", param })
  })
})

function refusal(json: string): string {
  try {
    checkJsonBounds(bytesOf(json))
    return "accepted"
  } catch (error) {
    return (error as Fault).message
  }
}

const { depthMax, containersMax, valuesMax } = standardBounds

describe("the shape of the JSON is bounded before it is parsed", () => {
  test("nesting", () => {
    expect(refusal("[".repeat(depthMax) + "]".repeat(depthMax))).toBe("accepted")
    expect(refusal("[".repeat(depthMax + 1) + "]".repeat(depthMax + 1))).toMatch(/more than 256 deep/)
  })
  test("objects and lists", () => {
    expect(refusal(`[${many(containersMax - 1, "{}").join(",")}]`)).toBe("accepted")
    expect(refusal(`[${many(containersMax, "{}").join(",")}]`)).toMatch(/more than 65536 objects and lists/)
  })
  test("values, except in lists of tokens", () => {
    expect(refusal(`[${many(valuesMax + 1, "1").join(",")}]`)).toBe("accepted")
    const more = `[${many(valuesMax + 2, "1").join(",")}]`
    expect(refusal(more)).toMatch(/more than 131072 values/)
    expect(outcomeOf("chat_completions", `{"metadata":${more}}`)).toMatchObject({ code: "invalid_request" })
    const tokens = outcomeOf("embeddings", `{"model":"m","input":[${more}]}`)
    expect(tokens).not.toMatchObject({ message: expect.stringContaining("values") })
  })
  test("brackets in strings do not count, whatever is escaped before their end", () => {
    const brackets = "[{".repeat(containersMax)
    expect(refusal(JSON.stringify([brackets, `\\${brackets}`, `"\\\\"${brackets}`]))).toBe("accepted")
    expect(refusal(`["\\\\",${"[".repeat(depthMax)}`)).toMatch(/deep/)
  })
  test("what is not JSON is left to the parser", () => {
    expect(refusal('"never closed')).toBe("accepted")
    expect(refusal("]]}}")).toBe("accepted")
    expect(outcomeOf("chat_completions", "{")).toMatchObject({ code: "invalid_json" })
  })
})

describe("a large body is read in a thread", () => {
  const reader = createBodyReader()
  const read = async (body: unknown) => await readBytes(bytesOf(body))
  const readBytes = async (bytes: Uint8Array) => {
    const named: string[] = []
    const asker = {
      organizationId: "org_a",
      signal: new AbortController().signal,
      sequence: { name: (model: string) => void named.push(model) },
    }
    const outcome = await reader("responses", bytes, asker).then(
      (request) => request.input,
      (error: unknown) => error,
    )
    return { named, outcome }
  }

  test("with the same result, and the event loop goes on meanwhile", async () => {
    const input = "a".repeat(threadBytesMin)
    let isRead = false
    const reading = read(responses(input)).finally(() => (isRead = true))
    // What this thread read would be there by now; what another did comes with a later turn of the event loop.
    for (let turn = 0; turn < 1_000; turn++) await Promise.resolve()
    expect(isRead).toBe(false)
    expect(await reading).toEqual({ named: ["m"], outcome: input })
  })

  test("its bytes are handed over, but for those that share their memory with others", async () => {
    const bytes = bytesOf(responses("a".repeat(threadBytesMin)))
    const beside = new Uint8Array(bytes.length + 1)
    beside.set(bytes)
    const part = beside.subarray(0, bytes.length)
    await Promise.all([readBytes(bytes), readBytes(part)])
    expect(bytes).toHaveLength(0)
    expect(part.length).toBeGreaterThan(threadBytesMin)
  })

  test("refused with the same fault, and the model it named is known", async () => {
    const { named, outcome } = await read(responses(many(30_000, {})))
    expect(named).toEqual(["m"])
    expect(outcome).toBeInstanceOf(Fault)
    expect(outcome).toMatchObject({ code: "invalid_request", param: "input" })
  })
})

test("objects and lists that are ignored are left out, texts that are given back stay", () => {
  const body = { ...chat([user("a")]), user: "someone", service_tier: many(3, []) }
  expect(outcomeOf("chat_completions", body)).toEqual({
    request: { ...chat([user("a")]), user: "someone" },
  })
})
