/** Passkeys over the API: added, signed in with, and refused when anything about them is not as it must be. */
import { type KeyPairKeyObjectResult, createHash, generateKeyPairSync, randomBytes, sign } from "node:crypto"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { hashPassword } from "../src/control/passwords.ts"
import { purgeExpired } from "../src/control/upkeep.ts"
import { openTestDatabase } from "./database.ts"
import { storeOperator } from "./operator.ts"
import { type Answer, type Platform, seeder, startPlatform } from "./platform.ts"

const password = "correct horse battery"
let platform: Platform
let aheadMs = 0
let made = 0

beforeAll(async () => {
  platform = await startPlatform(await openTestDatabase(), {
    deps: { clock: { nowMs: () => Date.now() + aheadMs, monotonicMs: () => performance.now() } },
  })
})
afterAll(async () => {
  await platform.close()
  await platform.database.close()
})

const post = async (path: string, body: unknown, bearer?: string): Promise<Answer> =>
  await platform.send("POST", `/v1/session${path}`, {
    ...(body === undefined ? {} : { body }),
    ...(bearer === undefined ? {} : { bearer }),
  })

const sha256 = (bytes: string | Uint8Array): Buffer => createHash("sha256").update(bytes).digest()
const origin = (): string => platform.url.replace("127.0.0.1", "localhost")

/** What an authenticator says, with what a test changes of it. */
interface Said {
  readonly host?: string
  readonly origin?: string
  readonly type?: string
  readonly flags?: number
  readonly count?: number
  readonly crossOrigin?: boolean
}

const verified = 0x05

const clientData = (challenge: string, kind: string, said: Said): Buffer =>
  Buffer.from(
    JSON.stringify({
      type: said.type ?? `webauthn.${kind}`,
      challenge,
      origin: said.origin ?? origin(),
      crossOrigin: said.crossOrigin ?? false,
    }),
  )
const head = (flags: number, said: Said): Buffer => {
  const rest = Buffer.alloc(5)
  rest.writeUInt8(said.flags ?? flags)
  rest.writeUInt32BE(said.count ?? 0, 1)
  return Buffer.concat([sha256(said.host ?? "localhost"), rest])
}

/** As a phone keeps one. */
function authenticator(keys: KeyPairKeyObjectResult = generateKeyPairSync("ec", { namedCurve: "P-256" })) {
  const id = randomBytes(32)
  return {
    make: (challenge: string, said: Said = {}) => ({
      name: "Phone",
      client_data: clientData(challenge, "create", said).toString("base64url"),
      authenticator_data: Buffer.concat([
        head(verified | 0x40, said),
        randomBytes(16),
        Buffer.from([0, id.length]),
        id,
        Buffer.from("what browsers read"),
      ]).toString("base64url"),
      public_key: keys.publicKey.export({ format: "der", type: "spki" }).toString("base64url"),
    }),
    sign: (challenge: string, said: Said = {}) => {
      const data = head(verified, said)
      const client = clientData(challenge, "get", said)
      const algorithm = keys.privateKey.asymmetricKeyType === "ed25519" ? null : "sha256"
      const signature = sign(algorithm, Buffer.concat([data, sha256(client)]), keys.privateKey)
      return {
        credential_id: id.toString("base64url"),
        client_data: client.toString("base64url"),
        authenticator_data: data.toString("base64url"),
        signature: signature.toString("base64url"),
      }
    },
  }
}
type Authenticator = ReturnType<typeof authenticator>

async function person(): Promise<{ id: string; email: string; bearer: string }> {
  const email = `person${++made}@example.com`
  const id = await seeder(platform).user(email, await hashPassword(password))
  return { id, email, bearer: await seeder(platform).session(id) }
}
const begin = async (bearer: string): Promise<string> =>
  (await post("/passkeys/challenge", { current_password: password }, bearer)).body.data.challenge
const challenge = async (): Promise<string> =>
  (await post("/passkey_challenge", undefined)).body.data.challenge
const signIn = async (device: Authenticator, said?: Said): Promise<Answer> =>
  await post("", { passkey: device.sign(await challenge(), said) })

async function withPasskey(keys?: KeyPairKeyObjectResult) {
  const who = await person()
  const device = authenticator(keys)
  const added = await post("/passkeys", device.make(await begin(who.bearer)), who.bearer)
  expect(added.status).toBe(200)
  return { ...who, device, passkeyId: added.body.data.id as string }
}

test.each([
  ["ES256", () => generateKeyPairSync("ec", { namedCurve: "P-256" })],
  ["EdDSA", () => generateKeyPairSync("ed25519")],
  ["RS256", () => generateKeyPairSync("rsa", { modulusLength: 2048 })],
])("a passkey of %s signs its user in, and the session says how it began", async (_, keys) => {
  const { id, device, bearer } = await withPasskey(keys())
  const done = await signIn(device)
  expect([done.status, done.body.data?.user.id]).toEqual([200, id])
  const sessions = await platform.send("GET", "/v1/sessions", { bearer: done.body.data.token })
  expect(sessions.body.data.find((one: { current: boolean }) => one.current).method).toBe("passkey")
  const list = await platform.send("GET", "/v1/session/passkeys", { bearer })
  expect(list.body.data).toMatchObject([{ name: "Phone", last_used_at: expect.any(String) }])
})

test("a passkey needs the password to be added, and no code beside it to sign in", async () => {
  const { bearer } = await person()
  expect((await post("/passkeys/challenge", {}, bearer)).status).toBe(403)
  expect((await post("/passkeys/challenge", { current_password: "wrong" }, bearer)).status).toBe(403)
  const { id, device } = await withPasskey()
  await platform.database.query(
    "INSERT INTO second_factors (user_id, secret, confirmed_at, created_at) VALUES ($1, 'x', now(), now())",
    [id],
  )
  expect((await signIn(device)).status).toBe(200)
})

describe("a passkey is not added", () => {
  const strange: [string, Said][] = [
    ["for another host", { host: "example.com" }],
    ["at another origin", { origin: "https://example.com" }],
    ["in a frame of another site", { crossOrigin: true }],
    ["as an answer to a sign-in", { type: "webauthn.get" }],
    ["where the device did not ask who holds it", { flags: 0x41 }],
    ["without a credential", { flags: 0x05 }],
  ]
  test.each(strange)("%s", async (_, said) => {
    const { bearer } = await person()
    const answer = await post("/passkeys", authenticator().make(await begin(bearer), said), bearer)
    expect([answer.status, answer.body.error?.code]).toEqual([403, "permission_denied"])
  })

  test("with a challenge of somebody else, used before, expired or of a sign-in", async () => {
    const [one, other] = [await person(), await person()]
    const add = async (given: string): Promise<number> =>
      (await post("/passkeys", authenticator().make(given), one.bearer)).status
    expect(await add(await begin(other.bearer))).toBe(403)
    expect(await add(await challenge())).toBe(403)
    const own = await begin(one.bearer)
    expect(await add(own)).toBe(200)
    expect(await add(own)).toBe(403)
    const late = await begin(one.bearer)
    aheadMs = 5 * 60_000
    expect(await add(late)).toBe(403)
    aheadMs = 0
  })

  test.each([
    ["a curve that is not offered", generateKeyPairSync("ec", { namedCurve: "P-384" })],
    ["RSA of 1,024 bits", generateKeyPairSync("rsa", { modulusLength: 1024 })],
    ["a key for agreement only", generateKeyPairSync("x25519")],
  ])("with %s", async (_, keys) => {
    const { bearer } = await person()
    expect((await post("/passkeys", authenticator(keys).make(await begin(bearer)), bearer)).status).toBe(403)
  })

  test("a second time, and not beyond twenty", async () => {
    const { bearer, device } = await withPasskey()
    const again = await post("/passkeys", device.make(await begin(bearer)), bearer)
    expect([again.status, again.body.error.code]).toEqual([409, "conflict"])
    for (let count = 1; count < 20; count++)
      expect((await post("/passkeys", authenticator().make(await begin(bearer)), bearer)).status).toBe(200)
    expect((await post("/passkeys", authenticator().make(await begin(bearer)), bearer)).status).toBe(409)
  })
})

describe("a passkey does not sign in", () => {
  const strange: [string, Said][] = [
    ["for another host", { host: "example.com" }],
    ["at another origin", { origin: "https://example.com" }],
    ["in a frame of another site", { crossOrigin: true }],
    ["with what was signed to add one", { type: "webauthn.create" }],
    ["where the device did not ask who holds it", { flags: 0x01 }],
  ]
  test.each(strange)("%s", async (_, said) => {
    const { device } = await withPasskey()
    expect((await signIn(device, said)).status).toBe(401)
    expect((await signIn(device)).status).toBe(200)
  })

  test("with a challenge that was used, has expired, or was never given", async () => {
    const { bearer, device } = await withPasskey()
    const used = device.sign(await challenge())
    expect((await post("", { passkey: used })).status).toBe(200)
    expect((await post("", { passkey: used })).status).toBe(401)
    expect((await post("", { passkey: device.sign("bm90IGdpdmVu") })).status).toBe(401)
    expect((await post("", { passkey: device.sign(await begin(bearer)) })).status).toBe(401)
    const late = await challenge()
    aheadMs = 5 * 60_000
    expect((await post("", { passkey: device.sign(late) })).status).toBe(401)
    await purgeExpired(platform.database, new Date(Date.now() + aheadMs + 1))
    aheadMs = 0
    expect(await platform.database.query("SELECT 1 FROM passkey_challenges")).toEqual([])
  })

  test("with another device's signature, or when it is unknown", async () => {
    const [one, other] = [await withPasskey(), await withPasskey()]
    const given = await challenge()
    const { signature } = other.device.sign(given)
    expect((await post("", { passkey: { ...one.device.sign(given), signature } })).status).toBe(401)
    expect((await signIn(authenticator())).status).toBe(401)
  })

  test("from a copy: a device that counts must have counted further", async () => {
    const { device } = await withPasskey()
    expect((await signIn(device, { count: 5 })).status).toBe(200)
    expect((await signIn(device, { count: 5 })).status).toBe(401)
    expect((await signIn(device, { count: 0 })).status).toBe(401)
    expect((await signIn(device, { count: 6 })).status).toBe(200)
  })

  test("after it was removed, which only its user can do, or after the operator's reset", async () => {
    const [one, other] = [await withPasskey(), await withPasskey()]
    const remove = async (bearer: string): Promise<number> =>
      (await platform.send("DELETE", `/v1/session/passkeys/${one.passkeyId}`, { bearer })).status
    expect(await remove(other.bearer)).toBe(404)
    expect((await signIn(one.device)).status).toBe(200)
    expect(await remove(one.bearer)).toBe(204)
    expect((await signIn(one.device)).status).toBe(401)
    await storeOperator(platform).resetPassword({ body: { email: other.email } })
    expect((await signIn(other.device)).status).toBe(401)
  })
})

test.each([
  ["http://127.0.0.1:8484", "http://localhost:8484"],
  ["http://[::1]:8484", "http://localhost:8484"],
  ["https://umpire.example.com/", "https://umpire.example.com"],
  ["http://10.0.0.7:8484", null],
])("an installation at %s uses passkeys at %s", async (address, expected) => {
  const there = await startPlatform(platform.database, { deps: { publicUrl: () => address } })
  const { body } = await there.send("GET", "/v1/session/options")
  expect(body.data.passkey_origin).toBe(expected)
  if (expected === null)
    expect((await there.send("POST", "/v1/session/passkey_challenge")).body.error.message).toContain(
      "host name",
    )
  await there.close()
})
