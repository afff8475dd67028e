/** Forgotten passwords by mail, and two-factor sign-in: set up, asked for, guessed at, recovered and reset. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest"
import { RateLimiter } from "../src/base/rate-limiter.ts"
import { hashPassword } from "../src/control/passwords.ts"
import { type SendMail, createOneTimeLink } from "../src/control/sessions.ts"
import { codeAt, stepAt } from "../src/control/totp.ts"
import { secretOf } from "./authenticator-app.ts"
import { openTestDatabase } from "./database.ts"
import { ManualClock } from "./manual-clock.ts"
import { storeOperator } from "./operator.ts"
import { type Answer, type Platform, seeder, startPlatform } from "./platform.ts"

const password = "correct horse battery"
const minuteMs = 60_000
let aheadMs = 0
const clock = { nowMs: () => Date.now() + aheadMs, monotonicMs: () => performance.now() }
/** Attempts come back only when a test says so. */
const limitsClock = new ManualClock(0)
const mails: Parameters<SendMail>[0][] = []
let platform: Platform
let made = 0

beforeAll(async () => {
  platform = await startPlatform(await openTestDatabase(), {
    rateLimits: new RateLimiter(limitsClock),
    deps: { clock, sendMail: (mail) => void mails.push(mail) },
  })
})
afterAll(async () => {
  await platform.close()
  await platform.database.close()
})
beforeEach(() => {
  aheadMs = 0
  mails.length = 0
})

async function person(): Promise<{ id: string; email: string }> {
  const email = `person${++made}@example.com`
  return { email, id: await seeder(platform).user(email, await hashPassword(password)) }
}
const post = async (path: string, body: unknown, bearer?: string): Promise<Answer> =>
  await platform.send("POST", `/v1/session${path}`, { body, ...(bearer === undefined ? {} : { bearer }) })
const isSignedIn = async (bearer: string): Promise<boolean> =>
  (await platform.send("GET", "/v1/session", { bearer })).status === 200

const linkOf = (text = ""): string => /#reset=([\w-]+)/.exec(text)?.[1] ?? ""
const finish = async (link: string): Promise<number> =>
  (await post("/reset/finish", { link, password: "a new password" })).status

const mailed = async (email: string): Promise<string> => {
  expect((await post("/reset", { email })).status).toBe(204)
  await expect.poll(() => mails.length).toBe(1)
  return linkOf(mails.pop()?.text)
}

describe("a forgotten password", () => {
  test("is replaced by a link that is mailed, works once and ends sessions and other links", async () => {
    const { id, email } = await person()
    const before = await seeder(platform).session(id)
    const { link: other } = await createOneTimeLink(
      platform.database,
      { userId: id, purpose: "sign_in" },
      new Date(),
    )
    expect((await post("/reset", { email: email.toUpperCase() })).status).toBe(204)
    await expect.poll(() => mails).toMatchObject([{ address: email, subject: "[Umpire] Set a new password" }])
    expect(mails[0]?.text).toContain(`${platform.url}/sign-in#reset=`)
    const link = linkOf(mails[0]?.text)
    // Asking changes nothing, and the link does not sign in without a new password.
    expect(await isSignedIn(before)).toBe(true)
    expect((await post("", { link })).status).toBe(401)
    expect((await post("/reset/finish", { link, password: "short" })).status).toBe(422)
    const done = await post("/reset/finish", { link, password: "a new password" })
    expect([done.status, done.body.data.user.id]).toEqual([200, id])
    expect(await isSignedIn(done.body.data.token)).toBe(true)
    expect(await isSignedIn(before)).toBe(false)
    expect((await post("/reset/finish", { link, password: "another password" })).status).toBe(401)
    expect((await post("", { link: other })).status).toBe(401)
    expect((await post("", { email, password })).status).toBe(401)
    expect((await post("", { email, password: "a new password" })).status).toBe(200)
  })

  test("a link ends after an hour, with the next link, and with a new password", async () => {
    const { id, email } = await person()
    const first = await mailed(email)
    const second = await mailed(email)
    expect(await finish(first)).toBe(401)
    aheadMs = 60 * minuteMs
    expect(await finish(second)).toBe(401)
    aheadMs = 0
    const third = await mailed(email)
    const body = { password: "chosen password", current_password: password }
    const bearer = await seeder(platform).session(id)
    expect((await platform.send("PUT", "/v1/session/password", { bearer, body })).status).toBe(204)
    expect(await finish(third)).toBe(401)
  })

  test("an unknown address is answered as a known one, also when there are too many; a placeholder gets no mail", async () => {
    const { email } = await person()
    const asked = async (address: string): Promise<unknown[]> => {
      const statuses: unknown[] = []
      for (let n = 0; n < 4; n++) {
        const { status, body } = await post("/reset", { email: address })
        statuses.push([status, body])
      }
      return statuses
    }
    const unknown = await asked("unknown@example.com")
    expect(unknown.map((one) => (one as [number])[0])).toEqual([204, 204, 204, 429])
    expect(await asked(email)).toEqual(unknown)
    await expect.poll(() => mails.map(({ address }) => address)).toEqual([email, email, email])
    await seeder(platform).user(`owner${++made}@localhost`)
    expect((await post("/reset", { email: `owner${made}@localhost` })).status).toBe(204)
    const { email: last } = await person()
    await post("/reset", { email: last })
    await expect.poll(() => mails.at(-1)?.address).toBe(last)
    expect(mails).toHaveLength(4)
  })

  test("without a mail server the operator is who helps", async () => {
    const plain = await startPlatform(platform.database)
    const options = await plain.send("GET", "/v1/session/options")
    expect(options.body.data).toMatchObject({ single_sign_on: false, password_reset: "operator" })
    const refused = await plain.send("POST", "/v1/session/reset", { body: { email: "ada@example.com" } })
    expect([refused.status, refused.body.error.message]).toEqual([
      404,
      expect.stringContaining("umpire users reset"),
    ])
    await plain.close()
    expect((await platform.send("GET", "/v1/session/options")).body.data.password_reset).toBe("mail")
  })
})

interface Protected {
  readonly id: string
  readonly email: string
  readonly bearer: string
  readonly recovery: string[]
  /** Of the next time step: none is taken twice. */
  readonly code: () => string
}

async function protect(): Promise<Protected> {
  const { id, email } = await person()
  const bearer = await seeder(platform).session(id)
  const begun = await post("/second_factor", { current_password: password }, bearer)
  expect(begun.status).toBe(200)
  expect(begun.body.data.uri).toContain(`secret=${begun.body.data.secret}`)
  const secret = secretOf(begun.body.data.secret)
  const code = (): string => {
    aheadMs += 30_000
    return codeAt(secret, stepAt(clock.nowMs()))
  }
  const confirmed = await post("/second_factor/confirm", { code: code() }, bearer)
  expect(confirmed.status).toBe(200)
  return { id, email, bearer, code, recovery: confirmed.body.data.recovery_codes }
}

describe("two-factor sign-in", () => {
  test("is set up with the password, is on after a first code, and ends other sessions", async () => {
    const { id, email } = await person()
    const [bearer, other] = [await seeder(platform).session(id), await seeder(platform).session(id)]
    expect((await post("/second_factor", {}, bearer)).status).toBe(403)
    expect((await post("/second_factor", { current_password: "wrong" }, bearer)).status).toBe(403)
    const begun = await post("/second_factor", { current_password: password }, bearer)
    // What is not confirmed is not asked for.
    expect((await post("", { email, password })).status).toBe(200)
    expect((await post("/second_factor/confirm", { code: "000000" }, bearer)).status).toBe(403)
    const rows = await platform.database.query("SELECT secret FROM second_factors WHERE user_id = $1", [id])
    expect(JSON.stringify(rows)).toMatch(/^\[\{"secret":"sealed:/)
    const code = codeAt(secretOf(begun.body.data.secret), stepAt(clock.nowMs()))
    const confirmed = await post("/second_factor/confirm", { code }, bearer)
    expect(new Set(confirmed.body.data.recovery_codes).size).toBe(10)
    expect([await isSignedIn(bearer), await isSignedIn(other)]).toEqual([true, false])
    const state = await platform.send("GET", "/v1/session/second_factor", { bearer })
    expect(state.body.data).toEqual({ enabled: true, recovery_codes_left: 10 })
    expect((await post("/second_factor", { current_password: password }, bearer)).status).toBe(409)
  })

  test("asks for the code after the password only, and takes each once", async () => {
    const { email, code } = await protect()
    const needed = await post("", { email, password })
    expect([needed.status, needed.body.error.code]).toEqual([401, "second_factor_required"])
    const now = code()
    const wrong = await post("", { email, password: "wrong", code: now })
    expect([wrong.status, wrong.body.error.code]).toEqual([401, "invalid_credentials"])
    expect((await post("", { email, password, code: "000000" })).status).toBe(401)
    expect((await post("", { email, password, code: now })).status).toBe(200)
    expect((await post("", { email, password, code: now })).status).toBe(401)
    expect((await post("", { email, password, code: code() })).status).toBe(200)
  })

  test("asks for it with links too, which stay unused until it is right", async () => {
    const { id, email, code } = await protect()
    const { link } = await createOneTimeLink(
      platform.database,
      { userId: id, purpose: "sign_in" },
      new Date(),
    )
    expect((await post("", { link })).body.error.code).toBe("second_factor_required")
    expect((await post("", { link, code: "000000" })).status).toBe(401)
    expect((await post("", { link, code: code() })).status).toBe(200)
    expect((await post("", { link, code: code() })).body.error.code).toBe("invalid_credentials")
    await post("/reset", { email })
    await expect.poll(() => mails.length).toBe(1)
    const reset = { link: /#reset=([\w-]+)/.exec(mails[0]?.text ?? "")?.[1], password: "a new password" }
    expect((await post("/reset/finish", reset)).body.error.code).toBe("second_factor_required")
    expect((await post("/reset/finish", { ...reset, code: code() })).status).toBe(200)
  })

  test("a recovery code works once, however it is typed, and new ones end the old ones", async () => {
    const { email, bearer, code, recovery } = await protect()
    const [first = "", second = ""] = recovery
    const typed = ` ${first.toUpperCase().replaceAll("-", " ")} `
    expect((await post("", { email, password, code: typed })).status).toBe(200)
    expect((await post("", { email, password, code: first })).status).toBe(401)
    const replaced = await post("/second_factor/recovery_codes", { code: code() }, bearer)
    expect(replaced.body.data.recovery_codes).toHaveLength(10)
    expect((await post("", { email, password, code: second })).status).toBe(401)
    expect((await post("", { email, password, code: replaced.body.data.recovery_codes[9] })).status).toBe(200)
  })

  test("the sixth guess is refused, wherever it comes from, also with the right code, until time has passed", async () => {
    const { email, code } = await protect()
    const statuses: number[] = []
    for (let guess = 0; guess < 6; guess++)
      statuses.push((await post("", { email, password, code: String(guess).padStart(6, "0") })).status)
    expect(statuses).toEqual([401, 401, 401, 401, 401, 429])
    expect((await post("", { email, password, code: code() })).status).toBe(429)
    limitsClock.advance(15 * minuteMs)
    expect((await post("", { email, password, code: code() })).status).toBe(200)
  })

  test("is switched off with a code, and by the operator's reset", async () => {
    const { bearer, email, code } = await protect()
    expect((await post("/second_factor/remove", { code: "000000" }, bearer)).status).toBe(403)
    expect((await post("/second_factor/remove", { code: code() }, bearer)).status).toBe(204)
    expect((await post("", { email, password })).status).toBe(200)
    const other = await protect()
    const reset = await storeOperator(platform).resetPassword({ body: { email: other.email } })
    expect((await post("", { link: reset.link })).status).toBe(200)
    expect(
      await platform.database.query("SELECT 1 FROM recovery_codes WHERE user_id = $1", [other.id]),
    ).toEqual([])
  })
})
