import { expect, test } from "vitest"
import { z } from "zod"
import { endpoint } from "../contract/endpoint.ts"
import { Fault } from "../contract/errors.ts"
import { parseJsonBody, parseQuery } from "./input.ts"

const target = endpoint({
  method: "POST",
  path: "/x",
  area: "Test",
  surface: "platform",
  summary: "Test",
  access: { principals: [] },
  query: z.object({ from: z.string(), limit: z.coerce.number().optional() }),
  body: z.strictObject({ name: z.string(), nested: z.object({ id: z.number() }).optional() }),
  output: z.void(),
})

function faultOf(work: () => unknown): Fault {
  try {
    work()
  } catch (error) {
    if (error instanceof Fault) return error
  }
  throw new Error("nothing was refused")
}

test("what is missing is called missing, and what is wrong is not", () => {
  const missing = faultOf(() => parseQuery(target, new URLSearchParams("limit=1")))
  expect(missing.message).toBe("Cannot use the query: from: missing")
  expect(missing.details).toEqual([{ path: "from", message: "missing" }])
  const wrong = faultOf(() => parseQuery(target, new URLSearchParams("from=a&limit=b")))
  expect(wrong.message).not.toContain("missing")
  const nested = faultOf(() => parseJsonBody(target.body, Buffer.from('{"name":"a","nested":{}}')))
  expect(nested.message).toBe("Cannot use the body: nested.id: missing")
  const given = faultOf(() => parseJsonBody(target.body, Buffer.from('{"name":null}')))
  expect(given.message).toContain("received null")
})
