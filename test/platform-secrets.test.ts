/** A whole run of the real server at debug level writes no password, token or secret to any log line. */
import { afterAll, beforeAll, expect, test } from "vitest"
import { type TestServer, bootstrapKey, startServer } from "./server.ts"

const email = "founder@example.com"
const password = "a-password-nobody-logs-1"
let server: TestServer

beforeAll(async () => {
  server = await startServer({
    env: { UMPIRE_LOG_LEVEL: "debug", UMPIRE_BOOTSTRAP_EMAIL: email, UMPIRE_BOOTSTRAP_PASSWORD: password },
  })
})

afterAll(async () => {
  await server.stop()
})

interface Sent {
  readonly bearer?: string
  readonly body?: unknown
  readonly headers?: Record<string, string>
}

// The bodies are of every shape; what is not there fails the expectations.
// oxlint-disable-next-line typescript/no-explicit-any
async function send(method: string, path: string, { bearer, body, headers }: Sent = {}): Promise<any> {
  const response = await fetch(server.url + path, {
    method,
    headers: {
      ...(bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }),
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
  })
  const text = await response.text()
  return { status: response.status, ...(text === "" ? {} : JSON.parse(text)) }
}

const secretOf = (value: string): string => value.split("_").at(-1) ?? value

test("no secret of a whole run appears in the log", async () => {
  const { token } = (await send("POST", "/v1/session", { body: { email, password } })).data
  const [{ id: org }] = (await send("GET", "/v1/organizations", { bearer: token })).data
  const base = `/v1/organizations/${org}`
  const key = (
    await send("POST", `${base}/api_keys`, {
      bearer: token,
      body: { name: "logged", permissions: ["inference", "api-read", "api-admin"] },
      headers: { "idempotency-key": "log-run" },
    })
  ).data
  const rotated = (await send("POST", `${base}/api_keys/${key.id}/rotate`, { bearer: token, body: {} })).data
  const invited = (
    await send("POST", `${base}/invites`, {
      bearer: token,
      body: { email: "new@example.com", role: "member" },
    })
  ).data
  const newPassword = "a-password-nobody-logs-2"
  const accepted = await send("POST", "/v1/invites/accept", {
    body: { token: invited.accept_token, password: newPassword },
  })
  const wrong = "a-password-nobody-logs-3"
  const refused = [
    await send("POST", "/v1/session", { body: { email, password: wrong } }),
    await send("GET", base, { bearer: key.secret }),
    await send("POST", "/v1/session", { body: `{"email":"${email}","password":"${wrong}"` }),
    await send("POST", "/v1/session", { body: { email, password: wrong, extra: wrong } }),
    await send("POST", "/v1/session", { body: { link: "a-link-nobody-logs-0123456789" } }),
    await send("GET", base, { headers: { cookie: `umpire_session=${token}x` } }),
    await send("POST", "/v1/decisions", { bearer: rotated.secret, body: { model: 1 } }),
  ]
  expect(refused.map(({ status }) => status)).toEqual([401, 401, 400, 422, 401, 401, 422])
  const changed = { password: "a-password-nobody-logs-4", current_password: password }
  expect((await send("PUT", "/v1/session/password", { bearer: token, body: changed })).status).toBe(204)
  expect((await send("DELETE", "/v1/session", { bearer: token })).status).toBe(204)

  const secrets = [
    password,
    newPassword,
    wrong,
    changed.password,
    "a-link-nobody-logs",
    secretOf(bootstrapKey),
    secretOf(token),
    secretOf(key.secret),
    secretOf(rotated.secret),
    invited.accept_token,
    secretOf(accepted.data.session.token),
  ]
  const written = server.stdout() + server.stderr()
  // The refusals are logged at debug level, so there is something to look through.
  expect(written).toContain("invalid_credentials")
  for (const secret of secrets) {
    expect(secret.length).toBeGreaterThan(15)
    expect(written).not.toContain(secret)
  }
})
