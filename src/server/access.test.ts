import { z } from "zod"
import { expect, test } from "vitest"
import { type RequestFacts, endpoint } from "../contract/endpoint.ts"
import { readCredentials } from "./access.ts"

const about = (method: "GET" | "POST", principals: readonly "session"[]) =>
  endpoint({
    method,
    path: "/x",
    area: "Test",
    surface: "platform",
    summary: "Test",
    access: { principals },
    output: z.void(),
  })
const reads = about("GET", ["session"])
const writes = about("POST", ["session"])
const open = about("POST", [])

function facts(headers: Record<string, string>): RequestFacts {
  const { signal } = new AbortController()
  const header = (name: string): string | null => headers[name] ?? null
  return { id: "req_1", ip: "127.0.0.1", userAgent: null, startedMs: 0, header, signal }
}

const cookie = "a=b; umpire_session=ums_value; c=d"
const fromCookie = { bearer: "ums_value", source: "cookie" }

test.each([
  ["a header", reads, { authorization: "Bearer one" }, { bearer: "one", source: "header" }],
  [
    "a header beside a cookie",
    writes,
    { authorization: "bearer  one ", cookie },
    { bearer: "one", source: "header" },
  ],
  ["nothing", reads, {}, null],
  ["other cookies", reads, { cookie: "xumpire_session=1; umpire_sessionx=2; umpire_session=" }, null],
  ["a read with the cookie", reads, { cookie }, fromCookie],
  ["a write with the header of our pages", writes, { cookie, "x-umpire-csrf": "1" }, fromCookie],
  ["a write from our origin", writes, { cookie, origin: "https://a.b:8", host: "a.b:8" }, fromCookie],
  [
    "a socket from our origin",
    reads,
    { cookie, upgrade: "websocket", origin: "https://a.b", host: "a.b" },
    fromCookie,
  ],
  ["an open write from elsewhere", open, { cookie, origin: "https://evil.example", host: "a.b" }, null],
] as const)("%s gives its credentials", (_, endpointOf, headers, expected) => {
  expect(readCredentials(endpointOf, facts(headers))).toEqual(expected)
})

test.each([
  ["a write without proof", writes, { cookie, host: "a.b" }, "csrf_refused"],
  ["a write from elsewhere", writes, { cookie, origin: "https://evil.example", host: "a.b" }, "csrf_refused"],
  [
    "a write from elsewhere that has the header too",
    writes,
    { cookie, origin: "https://evil.example", host: "a.b", "x-umpire-csrf": "1" },
    "csrf_refused",
  ],
  ["a write from another port", writes, { cookie, origin: "https://a.b:9", host: "a.b:8" }, "csrf_refused"],
  ["a write from a page without an origin", writes, { cookie, origin: "null", host: "a.b" }, "csrf_refused"],
  [
    "a socket from elsewhere",
    reads,
    { cookie, upgrade: "websocket", origin: "https://evil.example", host: "a.b" },
    "csrf_refused",
  ],
  [
    "a header that is no bearer value, even beside a good cookie",
    reads,
    { authorization: "Basic x", cookie },
    "missing_credentials",
  ],
  ["an empty bearer value", reads, { authorization: "Bearer " }, "missing_credentials"],
] as const)("%s is refused", (_, endpointOf, headers, code) => {
  expect(() => readCredentials(endpointOf, facts(headers))).toThrow(expect.objectContaining({ code }))
})

test("a page of the server's public address is ours, whatever host a proxy asks for", () => {
  const given = facts({
    cookie,
    origin: "https://umpire.example",
    host: "10.0.0.1:8484",
    "x-umpire-csrf": "1",
  })
  expect(readCredentials(writes, given, () => "https://umpire.example/")).toEqual(fromCookie)
  expect(() => readCredentials(writes, given)).toThrow(expect.objectContaining({ code: "csrf_refused" }))
})
