import { expect, test } from "vitest"
import { Fault } from "../../contract/errors.ts"
import { threadBytesMin } from "../../base/peer/threads.ts"
import { createDecode, decodeBody } from "./decode.ts"

const compatibility = { nullDescriptions: false, decisionsGa: false }
const never = new AbortController().signal
const decode = createDecode(compatibility)

/** A System One body of exactly `size` bytes, nearly all of them tiny values. */
function tinyValues(size: number): Uint8Array {
  const [head, tail] = [
    '{"model":"m","questions":{"q":{"type":"noul","instructions":"Is it?"}},"state":[',
    "1]}",
  ]
  const room = size - head.length - tail.length
  const values = "1,".repeat(Math.floor(room / 2))
  return Buffer.from(`${head}${values}${" ".repeat(room % 2)}${tail}`)
}

test("a small request is decoded while a large one that came before it still is", async () => {
  const order: string[] = []
  const arrive = async (size: number, name: string): Promise<void> => {
    await decode("systemone", tinyValues(size), "a", never)
    order.push(name)
  }
  const large = arrive(1_000_000, "large")
  const small = arrive(1024, "small")
  await Promise.all([large, small])
  expect(order).toEqual(["small", "large"])
})

test.each([-1, 0])("a body is decoded the same at the size for a thread %i", async (more) => {
  const bytes = tinyValues(threadBytesMin + more)
  const here = decodeBody({ wire: "systemone", bytes, compatibility })
  expect(await decode("systemone", bytes, "a", never)).toEqual(here)
})

test("every part of a large classification survives the way through a thread", async () => {
  const options = Array.from({ length: 255 }, (_, at) => ({
    value: at === 0 ? true : `v${at}`,
    description: "d",
  }))
  const questions = [
    { type: "predicate", name: "p", instructions: "x".repeat(10_000) },
    ...Array.from({ length: 8 }, () => ({ type: "choice", instructions: "Which?", choices: options })),
    { type: "score", instructions: "How?", levels: [{ label: "a" }, { label: "b", description: "more" }] },
  ]
  const input = "\u{1F4E6} paket ".repeat(10_000)
  const bytes = Buffer.from(JSON.stringify({ model: "m", input, questions }))
  expect(bytes.length).toBeGreaterThan(threadBytesMin)
  const here = decodeBody({ wire: "decisions", bytes, compatibility })
  expect(await decode("decisions", bytes, "a", never)).toEqual(here)
})

const withUnknownField = (stateBytes: number): Uint8Array =>
  Buffer.from(`{"model":"m","state":"${"x".repeat(stateBytes)}","questions":{},"more":1}`)

async function refusal(bytes: Uint8Array): Promise<{ code: unknown; message: unknown }> {
  try {
    await decode("systemone", bytes, "a", never)
  } catch (error) {
    if (error instanceof Fault) return { code: error.code, message: error.message }
  }
  throw new Error("It was not refused")
}

test("a large body is refused in the same words as a small one", async () => {
  const small = await refusal(withUnknownField(1))
  expect(small.code).toBe("unknown_field")
  expect(await refusal(withUnknownField(threadBytesMin))).toEqual(small)
})
