/** The classification endpoints over HTTP: every refusal of the table, every limit, and who is let in. */
import { mkdtempSync, writeFileSync } from "node:fs"
import { request } from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { stringify } from "yaml"
import { DecisionsResponse } from "../src/contract/decisions.ts"
import { SystemOneResponse } from "../src/contract/systemone.ts"
import { badClassificationInputs } from "./bad-classification-input.ts"
import { goodClassificationInputs } from "./good-classification-input.ts"
import { randomModel } from "./models.ts"
import { type TestServer, startServer } from "./server.ts"

const decisionsPath = "/v1/decisions"
const least = {
  model: "umpire-decide",
  input: "The sky is blue.",
  questions: [{ type: "predicate", instructions: "Is the sky blue?" }],
}

let server: TestServer
beforeAll(async () => {
  // A random model of one small layer and a very long context: what the contract accepts, it can evaluate.
  const config = join(mkdtempSync(join(tmpdir(), "umpire-limits-")), "umpire.yaml")
  writeFileSync(config, stringify({ models: [{ sku: "micro-long", file: randomModel("micro-long") }] }))
  server = await startServer({
    env: {
      UMPIRE_CONFIG: config,
      UMPIRE_LIMITS_REQUESTS_PER_MINUTE: "1000000",
      UMPIRE_LIMITS_BURST: "100000",
    },
  })
})
afterAll(async () => {
  await server.stop()
})

const send = async (
  path: string,
  body: string | Uint8Array,
  headers: Record<string, string> = {},
): Promise<Response> =>
  await fetch(server.url + path, {
    method: "POST",
    headers: { authorization: `Bearer ${server.key}`, ...headers },
    body: Buffer.from(body),
  })

test("a text in a language that the model has not learnt is answered with a warning", async () => {
  const warningOf = async (input: string): Promise<string | null> => {
    const body = JSON.stringify({ ...least, input })
    const response = await send(decisionsPath, body, { "content-type": "application/json" })
    expect(response.status).toBe(200)
    return response.headers.get("x-umpire-warning")
  }
  expect(await warningOf("Der Himmel ist heute nicht blau, und es regnet auf die Stadt.")).toBe("language")
  expect(await warningOf(least.input)).toBeNull()
})

describe("bad input", () => {
  test.each(badClassificationInputs)(
    "$endpoint: $name is $status $code",
    async ({ endpoint, body, status, code, contentType, headers }) => {
      const type =
        contentType === undefined
          ? { "content-type": "application/json" }
          : contentType === null
            ? {}
            : { "content-type": contentType }
      const response = await send(endpoint, body("umpire-decide"), { ...type, ...headers })
      const { error } = (await response.json()) as { error: Record<string, unknown> }
      expect([response.status, error["code"]]).toEqual([status, code])
      expect(error["message"]).toMatch(/^Cannot /)
      // Errors from the scorer omit the type (contract, ErrorDetails).
      expect(error).not.toHaveProperty("type")
    },
  )

  test("the server still answers after all of it", async () => {
    expect((await server.post(decisionsPath, least)).status).toBe(200)
  })
})

describe("limits", () => {
  const answered = { [decisionsPath]: DecisionsResponse, "/v1/systemone": SystemOneResponse }

  test.each(goodClassificationInputs)(
    "$endpoint: $name is accepted",
    async ({ endpoint, body, beyondModel }) => {
      const response = await send(endpoint, body("micro-long"), { "content-type": "application/json" })
      const reply = (await response.json()) as { error?: { code: string } }
      if (response.status === 200) expect(() => answered[endpoint].parse(reply)).not.toThrow()
      // Past the contract's own checks: what answers is the model, which may be too small or not there.
      else
        expect([beyondModel, reply.error?.code]).toEqual([
          true,
          expect.stringMatching(/^(context_length_exceeded|unknown_model)$/),
        ])
    },
  )

  test("one byte more than 8 MiB is refused while it is read, also without a length", async () => {
    const body = JSON.stringify(least).padEnd(8 * 1024 * 1024 + 1, " ")
    for (const chunked of [false, true]) {
      const reply = await sendRaw(body, chunked)
      expect(reply).toMatchObject({ status: 422, code: "body_too_large" })
    }
  })

  test("a request longer than the model's context is refused with both lengths", async () => {
    const response = await server.post(decisionsPath, { ...least, input: "word ".repeat(30_000) })
    const { error } = (await response.json()) as { error: { code: string; message: string } }
    expect(error.code).toBe("context_length_exceeded")
    expect(error.message).toMatch(/\b20480\b/)
    expect(error.message).toMatch(/\b300\d\d\b/)
  })
})

describe("at the door", () => {
  const credentials = [
    ["no header", undefined, "missing_credentials"],
    ["another scheme", "Basic dTpw", "missing_credentials"],
    ["an empty bearer", "Bearer ", "missing_credentials"],
    ["garbage", "Bearer garbage", "invalid_credentials"],
    ["an unknown key", "Bearer ump_nobody_0123456789abcdef", "invalid_credentials"],
    [
      "the right key with a wrong secret",
      "Bearer ump_00000000000000000000test_0123456789abcdefghjkmnpqrstvwxyy",
      "invalid_credentials",
    ],
  ] as const
  test.each(credentials)("%s is 401", async (_name, authorization, code) => {
    const response = await fetch(server.url + decisionsPath, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        ...(authorization === undefined ? {} : { authorization }),
      },
      body: "not even JSON",
    })
    const { error } = (await response.json()) as { error: { code: string; type: string } }
    expect([response.status, error.code, error.type]).toEqual([401, code, "authentication_error"])
    expect(response.headers.get("www-authenticate")).toBe("Bearer")
  })

  test("a sane request id is kept, another is replaced", async () => {
    const kept = await server.post(decisionsPath, least, { "x-request-id": "abc-123" })
    expect(kept.headers.get("x-request-id")).toBe("abc-123")
    const replaced = await server.post(decisionsPath, least, { "x-request-id": "a b\u00e9" })
    expect(replaced.headers.get("x-request-id")).toMatch(/^req_/)
  })

  test("limits are told in headers", async () => {
    const { headers } = await server.post(decisionsPath, least)
    expect(headers.get("x-ratelimit-limit-requests")).toBe("100000")
    expect(Number(headers.get("x-ratelimit-remaining-requests"))).toBeLessThan(100_000)
    expect(headers.get("x-ratelimit-reset-requests")).toMatch(/^\d+ms$/)
  })

  test("an unknown path is 404 with an error body, and the process is healthy", async () => {
    const response = await fetch(`${server.url}/v1/nothing`)
    expect([response.status, ((await response.json()) as { error: { code: string } }).error.code]).toEqual([
      404,
      "not_found",
    ])
    expect((await fetch(`${server.url}/healthz`)).status).toBe(200)
    expect((await fetch(`${server.url}/readyz`)).status).toBe(200)
    expect(
      ((await (await fetch(`${server.url}/openapi.json`)).json()) as { openapi: string }).openapi,
    ).toMatch(/^3\.1/)
  })
})

/** Node's own client, which can send a body of unknown length and read an early answer. */
async function sendRaw(
  body: string,
  chunked: boolean,
): Promise<{ status: number | undefined; code: string }> {
  return await new Promise((resolve, reject) => {
    const headers = {
      authorization: `Bearer ${server.key}`,
      "content-type": "application/json",
      ...(chunked ? { "transfer-encoding": "chunked" } : { "content-length": String(body.length) }),
    }
    const outgoing = request(server.url + decisionsPath, { method: "POST", headers }, (response) => {
      let text = ""
      response.setEncoding("utf8").on("data", (chunk: string) => (text += chunk))
      response.on("end", () =>
        resolve({
          status: response.statusCode,
          code: (JSON.parse(text) as { error: { code: string } }).error.code,
        }),
      )
    })
    outgoing.on("error", reject)
    outgoing.end(body)
  })
}
