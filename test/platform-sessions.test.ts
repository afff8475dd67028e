/** Signing in and out, passwords, one-time links, the cookie and its CSRF check, and the operator's reset. */
import { afterAll, beforeAll, expect, test } from "vitest"
import { ManualClock } from "./manual-clock.ts"
import { nextTurn } from "../src/base/turns.ts"
import { RateLimiter } from "../src/base/rate-limiter.ts"
import { hashPassword } from "../src/control/passwords.ts"
import { createOneTimeLink } from "../src/control/sessions.ts"
import { pageAudit } from "../src/store/audit.ts"
import { revokeSessionsOfUser } from "../src/store/sessions.ts"
import { updateUser } from "../src/store/users.ts"
import { openTestDatabase } from "./database.ts"
import { storeOperator } from "./operator.ts"
import { type Answer, type Platform, deaf, seeder, startPlatform } from "./platform.ts"

const password = "correct horse battery"
let platform: Platform
let userId: string
let organizationId: string

/** Their clock stands still: no attempt comes back while a busy machine pauses between two. */
const stoppedLimits = (): RateLimiter => new RateLimiter(new ManualClock(0))

beforeAll(async () => {
  platform = await startPlatform(deaf(await openTestDatabase()), { rateLimits: stoppedLimits() })
  const seed = seeder(platform)
  organizationId = await seed.organization("Acme", await seed.billingAccount())
  userId = await seed.user("Ada@Example.com", await hashPassword(password))
  await seed.member(organizationId, userId, "owner")
})

afterAll(async () => {
  await platform.close()
  await platform.database.close()
})

const signIn = async (body: unknown): Promise<Answer> => await platform.send("POST", "/v1/session", { body })
const whoAmI = async (bearer: string): Promise<Answer> =>
  await platform.send("GET", "/v1/session", { bearer })

async function token(): Promise<string> {
  const { status, body } = await signIn({ email: "ada@example.com", password })
  expect(status).toBe(200)
  return body.data.token
}

test("a session signs in by password, says who it is, and ends when it signs out", async () => {
  const bearer = await token()
  expect(bearer).toMatch(/^ums_/)
  const me = await whoAmI(bearer)
  expect(me.body.data.user).toEqual({ id: userId, email: "Ada@Example.com", name: null })
  expect((await platform.send("GET", "/v1/organizations", { bearer })).body.data).toHaveLength(1)
  expect((await platform.send("DELETE", "/v1/session", { bearer })).status).toBe(204)
  expect((await whoAmI(bearer)).status).toBe(401)
})

test("signing in and out and a new password are in the audit log of each of the user's organizations", async () => {
  const seed = seeder(platform)
  const id = await seed.user("seen@example.com", await hashPassword(password))
  const account = await seed.billingAccount()
  const organizations = [await seed.organization("One", account), await seed.organization("Two", account)]
  for (const one of organizations) await seed.member(one, id, "member")
  const bearer = (await signIn({ email: "seen@example.com", password })).body.data.token as string
  const body = { password: "another password", current_password: password }
  expect((await platform.send("PUT", "/v1/session/password", { bearer, body })).status).toBe(204)
  expect((await platform.send("DELETE", "/v1/session", { bearer })).status).toBe(204)
  for (const one of organizations) {
    const { items } = await pageAudit(platform.database, one, { actorIds: [id] }, { limit: 10 })
    expect(items.map(({ action, actorKind }) => [action, actorKind])).toEqual([
      ["session.delete", "session"],
      ["user.set_password", "session"],
      ["session.create", "session"],
    ])
    expect(JSON.stringify(items.map(({ before, after }) => [before, after]))).not.toContain("password")
  }
})

test("an unknown user, one without a password and a wrong password get the same answer", async () => {
  await seeder(platform).user("linkonly@example.com")
  const answers = [
    await signIn({ email: "ada@example.com", password: "wrong" }),
    await signIn({ email: "nobody@example.com", password }),
    await signIn({ email: "linkonly@example.com", password }),
  ]
  for (const answer of answers) expect([answer.status, answer.body]).toEqual([401, answers[0]?.body])
})

test("the eleventh attempt on one address is refused, whether or not the user exists, and others are not", async () => {
  for (const email of ["guessed@example.com", "absent@example.com"]) {
    if (email.startsWith("guessed")) await seeder(platform).user(email, await hashPassword(password))
    const statuses: number[] = []
    for (let attempt = 0; attempt < 11; attempt++)
      statuses.push((await signIn({ email, password: "guess" })).status)
    expect(statuses).toEqual([...Array<number>(10).fill(401), 429])
  }
  const refused = await signIn({ email: "GUESSED@example.com", password })
  expect(refused.status).toBe(429)
  expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0)
  expect((await signIn({ email: "ada@example.com", password })).status).toBe(200)
})

test.each([
  ["nobody is trusted", "", "127.0.0.1"],
  ["one proxy is trusted", "1", "203.0.113.9"],
  ["a network is trusted", "127.0.0.0/8", "203.0.113.9"],
  ["another network is trusted", "10.0.0.0/8", "127.0.0.1"],
])(
  "a forged X-Forwarded-For gains nothing where %s: the limit holds, and the audit log has the address",
  async (what, trustedProxies, address) => {
    const behind = await startPlatform(platform.database, { trustedProxies, rateLimits: stoppedLimits() })
    const seed = seeder(behind)
    const email = `${what.replaceAll(" ", "-")}@example.com`
    const user = await seed.user(email, await hashPassword(password))
    const organization = await seed.organization(what, await seed.billingAccount())
    await seed.member(organization, user, "primary_owner")
    // Whatever a client writes, a proxy appends the address that it was called from.
    const attempt = async (guess: string, forged: string): Promise<number> =>
      (
        await behind.send("POST", "/v1/session", {
          body: { email, password: guess },
          headers: { "x-forwarded-for": `${forged}, 203.0.113.9` },
        })
      ).status
    expect(await attempt(password, "6.6.6.6")).toBe(200)
    const statuses: number[] = []
    for (let count = 0; count < 11; count++) statuses.push(await attempt("guess", `6.6.6.${count}`))
    expect(statuses).toEqual([...Array<number>(10).fill(401), 429])
    const { items } = await pageAudit(platform.database, organization, {}, { limit: 10 })
    expect(items.map(({ action, ip }) => [action, ip])).toEqual([["session.create", address]])
    await behind.close()
  },
)

test("an address with as many passwords waiting as it may have is refused, and another one signs in", async () => {
  const behind = await startPlatform(platform.database, { trustedProxies: "1", rateLimits: stoppedLimits() })
  const over = new AbortController()
  const flood = Array.from({ length: 32 }, async () => {
    while (!over.signal.aborted)
      await hashPassword(password, "203.0.113.9").catch(async () => await nextTurn())
  })
  const attempt = async (from: string, body: object): Promise<Answer> =>
    await behind.send("POST", "/v1/session", { body, headers: { "x-forwarded-for": from } })
  let guesses = 0
  const guess = async (): Promise<number> =>
    (await attempt("203.0.113.9", { email: `none${guesses++}@example.com`, password })).status
  // One that comes just when a place is free is answered.
  await expect.poll(guess, { interval: 1 }).toBe(429)
  const signedIn = await attempt("203.0.113.10", { email: "ada@example.com", password })
  expect(signedIn.status).toBe(200)
  over.abort()
  await Promise.all(flood)
  await behind.close()
})

test("a one-time link signs in once", async () => {
  const { link } = await createOneTimeLink(platform.database, { userId, purpose: "sign_in" }, new Date())
  const first = await signIn({ link })
  expect([first.status, first.body.data.user.id]).toEqual([200, userId])
  expect((await signIn({ link })).status).toBe(401)
})

test("a later link and a new password end the links before them", async () => {
  const seed = seeder(platform)
  const id = await seed.user("links@example.com", await hashPassword(password))
  const first = await createOneTimeLink(platform.database, { userId: id, purpose: "sign_in" }, new Date())
  const second = await createOneTimeLink(platform.database, { userId: id, purpose: "sign_in" }, new Date())
  expect((await signIn({ link: first.link })).status).toBe(401)
  const body = { password: "a new password", current_password: password }
  const bearer = await seed.session(id)
  expect((await platform.send("PUT", "/v1/session/password", { bearer, body })).status).toBe(204)
  expect((await signIn({ link: second.link })).status).toBe(401)
  const third = await createOneTimeLink(platform.database, { userId: id, purpose: "sign_in" }, new Date())
  expect((await signIn({ link: third.link })).status).toBe(200)
})

test("the eleventh wrong guess at the current password is refused, and the right one is too late", async () => {
  const seed = seeder(platform)
  const id = await seed.user("stolen@example.com", await hashPassword(password))
  const bearer = await seed.session(id)
  const guess = async (current_password: string): Promise<number> => {
    const body = { password: "a new password", current_password }
    return (await platform.send("PUT", "/v1/session/password", { bearer, body })).status
  }
  const statuses: number[] = []
  for (let attempt = 0; attempt < 11; attempt++) statuses.push(await guess("wrong"))
  expect(statuses).toEqual([...Array<number>(10).fill(403), 429])
  expect(await guess(password)).toBe(429)
  expect((await signIn({ email: "stolen@example.com", password })).status).toBe(200)
})

test("the owner of a first start replaces the placeholder, sets a password and signs in with them", async () => {
  const seed = seeder(platform)
  const id = await seed.user("owner@localhost")
  const account = await seed.billingAccount()
  await platform.database.query("UPDATE billing_accounts SET email = 'owner@localhost' WHERE id = $1", [
    account,
  ])
  const organization = await seed.organization("Personal", account, true)
  await seed.member(organization, id, "primary_owner")
  const bearer = await seed.session(id)
  const flags = async (): Promise<unknown[]> => {
    const { data } = (await whoAmI(bearer)).body
    return [data.has_password, data.setup_required, data.email_changeable]
  }
  const update = async (body: unknown): Promise<Answer> =>
    await platform.send("PATCH", "/v1/session/user", { bearer, body })
  expect(await flags()).toEqual([false, true, true])
  const set = async (given: object): Promise<number> =>
    (await platform.send("PUT", "/v1/session/password", { bearer, body: given })).status
  expect(await set({ password })).toBe(204)
  expect((await signIn({ email: "owner@localhost", password })).status).toBe(200)
  expect((await update({})).status).toBe(422)
  expect((await update({ email: "ADA@example.com" })).status).toBe(409)
  const updated = await update({ email: "grace@example.com", name: "Grace" })
  expect([updated.status, updated.body.data]).toEqual([
    200,
    { id, email: "grace@example.com", name: "Grace" },
  ])
  expect(await flags()).toEqual([true, false, false])
  expect((await update({ email: "another@example.com" })).status).toBe(409)
  expect((await update({ name: null })).body.data.name).toBeNull()
  expect((await signIn({ email: "grace@example.com", password })).status).toBe(200)
  expect((await signIn({ email: "owner@localhost", password })).status).toBe(401)
  const { items } = await pageAudit(platform.database, organization, { action: "user.update" }, { limit: 5 })
  expect(items.map(({ before, after }) => [before, after])).toContainEqual([
    { email: "owner@localhost", name: null },
    { email: "grace@example.com", name: "Grace" },
  ])
  const rows = await platform.database.query("SELECT email FROM billing_accounts WHERE id = $1", [account])
  expect(rows).toEqual([{ email: "grace@example.com" }])
})

test("an expired link does not sign in", async () => {
  const longAgo = new Date(Date.now() - 24 * 3_600_000)
  const { link } = await createOneTimeLink(platform.database, { userId, purpose: "sign_in" }, longAgo)
  expect((await signIn({ link })).status).toBe(401)
})

test("a session that expired, or was idle for twelve hours, does not authenticate", async () => {
  const seed = seeder(platform)
  const hourMs = 3_600_000
  expect((await whoAmI(await seed.session(userId, -1))).status).toBe(401)
  expect((await whoAmI(await seed.session(userId, hourMs, 12 * hourMs))).status).toBe(401)
  expect((await whoAmI(await seed.session(userId, hourMs, 12 * hourMs - 600_000))).status).toBe(200)
})

test("a new password needs the current one and ends every other session", async () => {
  const seed = seeder(platform)
  const id = await seed.user("changer@example.com", await hashPassword(password))
  const [mine, other] = [await seed.session(id), await seed.session(id)]
  const set = async (body: unknown): Promise<number> =>
    (await platform.send("PUT", "/v1/session/password", { bearer: mine, body })).status
  expect(await set({ password: "a new password" })).toBe(403)
  expect(await set({ password: "a new password", current_password: "wrong" })).toBe(403)
  expect(await set({ password: "short", current_password: password })).toBe(422)
  expect((await whoAmI(other)).status).toBe(200)
  expect(await set({ password: "a new password", current_password: password })).toBe(204)
  expect([(await whoAmI(mine)).status, (await whoAmI(other)).status]).toEqual([200, 401])
  expect((await signIn({ email: "changer@example.com", password })).status).toBe(401)
  expect((await signIn({ email: "changer@example.com", password: "a new password" })).status).toBe(200)
})

test("the operator's reset ends password and sessions and answers a link that signs in once", async () => {
  const seed = seeder(platform)
  const id = await seed.user("forgetful@example.com", await hashPassword(password))
  const organization = await seed.organization("Forgetful", await seed.billingAccount())
  await seed.member(organization, id, "member")
  const bearer = await seed.session(id)
  expect((await whoAmI(bearer)).status).toBe(200)
  const reset = await storeOperator(platform).resetPassword({ body: { email: "FORGETFUL@example.com" } })
  expect(reset.url).toBe(`https://umpire.example/sign-in#link=${reset.link}`)
  const { items } = await pageAudit(
    platform.database,
    organization,
    { action: "user.reset_password" },
    { limit: 2 },
  )
  expect(items).toMatchObject([{ actorKind: "operator", resourceType: "user", resourceId: id }])
  expect((await whoAmI(bearer)).status).toBe(401)
  expect((await signIn({ email: "forgetful@example.com", password })).status).toBe(401)
  const signedIn = await signIn({ link: reset.link })
  expect(signedIn.status).toBe(200)
  const set = { bearer: signedIn.body.data.token, body: { password: "remembered now" } }
  expect((await platform.send("PUT", "/v1/session/password", set)).status).toBe(204)
})

test("a password that was taken away while it was compared does not sign in, and an ended session sets none", async () => {
  const { database } = platform
  const seed = seeder(platform)
  const id = await seed.user("raced@example.com", await hashPassword(password))
  // As a reset and the first single sign-on do, between the hashing and what is written after it.
  const reset = async (): Promise<void> => {
    await updateUser(database, id, { passwordHash: null }, new Date())
    await revokeSessionsOfUser(database, id, new Date())
  }
  const racing = await startPlatform({
    ...database,
    transaction: async (work, options) => {
      await reset()
      return await database.transaction(work, options)
    },
  })
  const body = { password: "another password", current_password: password }
  const set = await racing.send("PUT", "/v1/session/password", { bearer: await seed.session(id), body })
  expect(set.status).toBe(401)
  await updateUser(database, id, { passwordHash: await hashPassword(password) }, new Date())
  const signedIn = await racing.send("POST", "/v1/session", {
    body: { email: "raced@example.com", password },
  })
  expect(signedIn.status).toBe(401)
  await racing.close()
})

test("the cookie is HttpOnly and SameSite=Lax, reads like a bearer value, and is cleared by signing out", async () => {
  const answer = await signIn({ email: "ada@example.com", password })
  const cookie = answer.headers.get("set-cookie") ?? ""
  expect(cookie).toMatch(/^umpire_session=ums_\w+; Path=\/; HttpOnly; SameSite=Lax; Max-Age=2592000$/)
  const headers = { cookie: `theme=dark; ${cookie.split(";")[0]}` }
  expect((await platform.send("GET", "/v1/session", { headers })).status).toBe(200)
  const out = await platform.send("DELETE", "/v1/session", { headers: { ...headers, "x-umpire-csrf": "1" } })
  expect(out.status).toBe(204)
  expect(out.headers.get("set-cookie")).toMatch(/^umpire_session=; .*Max-Age=0/)
})

test("a write with the cookie must come from our own page; a bearer value needs no such proof", async () => {
  const bearer = await token()
  const cookie = `umpire_session=${bearer}`
  const rename = async (headers: Record<string, string>): Promise<Answer> =>
    await platform.send("PATCH", `/v1/organizations/${organizationId}`, { headers, body: { name: "Acme" } })
  const { host } = new URL(platform.url)
  const refused = await rename({ cookie })
  expect([refused.status, refused.body.error.code]).toEqual([403, "csrf_refused"])
  expect((await rename({ cookie, origin: "https://evil.example" })).status).toBe(403)
  expect((await rename({ cookie, origin: "null" })).status).toBe(403)
  expect((await rename({ cookie, origin: `http://${host}` })).status).toBe(200)
  expect((await rename({ cookie, "x-umpire-csrf": "1" })).status).toBe(200)
  expect((await rename({ authorization: `Bearer ${bearer}` })).status).toBe(200)
})

test("an old cookie keeps nobody from signing in, and opens nothing", async () => {
  const headers = { cookie: "umpire_session=ums_0123456789abcdef0123456789", "x-umpire-csrf": "1" }
  const body = { email: "ada@example.com", password }
  expect((await platform.send("POST", "/v1/session", { headers, body })).status).toBe(200)
  expect((await platform.send("GET", "/v1/session", { headers })).status).toBe(401)
})

test("signing in does not need the proof, for the cookie does not count there", async () => {
  const headers = { cookie: `umpire_session=${await token()}`, origin: "https://evil.example" }
  const body = { email: "ada@example.com", password }
  expect((await platform.send("POST", "/v1/session", { headers, body })).status).toBe(200)
})

test("without a provider there is no single sign-on", async () => {
  expect((await platform.send("GET", "/v1/session/sso")).status).toBe(404)
  const options = await platform.send("GET", "/v1/session/options")
  expect(options.body).toMatchObject({ data: { single_sign_on: false, password_reset: "operator" } })
})

test("a user sees the sessions that are valid and ends one, and nobody else's", async () => {
  const seed = seeder(platform)
  const id = await seed.user("many@example.com", await hashPassword(password))
  const [here, there] = [await seed.session(id), await seed.session(id)]
  await seed.session(id, -1)
  const started = await signIn({ email: "many@example.com", password })
  const list = async (bearer: string) => (await platform.send("GET", "/v1/sessions", { bearer })).body.data
  const listed = await list(here)
  expect(listed.map((one: { method: string | null }) => one.method)).toEqual(["password", null, null])
  expect(listed.filter((one: { current: boolean }) => one.current)).toHaveLength(1)
  const [other] = (await list(there)).filter((one: { current: boolean }) => one.current)
  const end = async (bearer: string): Promise<number> =>
    (await platform.send("DELETE", `/v1/sessions/${other.id}`, { bearer })).status
  const stranger = await seed.session(await seed.user("stranger@example.com"))
  expect([await end(stranger), await end(here), await end(here)]).toEqual([404, 204, 404])
  expect((await platform.send("GET", "/v1/session", { bearer: there })).status).toBe(401)
  expect((await platform.send("GET", "/v1/session", { bearer: started.body.data.token })).status).toBe(200)
})

test("an owner ends sessions of members only, and it is in the audit log", async () => {
  const seed = seeder(platform)
  const organization = await seed.organization("Ended", await seed.billingAccount())
  const ids = [await seed.user("chief@example.com"), await seed.user("worker@example.com")]
  await seed.member(organization, ids[0] ?? "", "owner")
  await seed.member(organization, ids[1] ?? "", "member")
  const [owner, member] = [await seed.session(ids[0] ?? ""), await seed.session(ids[1] ?? "")]
  const outsider = await seed.session(await seed.user("outside@example.com"))
  const path = `/v1/organizations/${organization}/sessions`
  expect((await platform.send("GET", path, { bearer: member })).status).toBe(403)
  const { body } = await platform.send("GET", path, { bearer: owner })
  const of = (email: string) =>
    body.data.filter((one: { user: { email: string } }) => one.user.email === email)
  expect(body.data).toHaveLength(2)
  const [foreign] = (await platform.send("GET", "/v1/sessions", { bearer: outsider })).body.data
  expect((await platform.send("DELETE", `${path}/${foreign.id}`, { bearer: owner })).status).toBe(404)
  const [ended] = of("worker@example.com")
  expect((await platform.send("DELETE", `${path}/${ended.id}`, { bearer: owner })).status).toBe(204)
  expect((await platform.send("GET", "/v1/session", { bearer: member })).status).toBe(401)
  const { items } = await pageAudit(platform.database, organization, {}, { limit: 10 })
  expect(items.map(({ action, resourceId }) => [action, resourceId])).toEqual([["session.delete", ended.id]])
})

test("an owner ends no session of a primary owner, nor of a member who also belongs elsewhere", async () => {
  const seed = seeder(platform)
  const account = await seed.billingAccount()
  const organization = await seed.organization("Ranked", account)
  const people = {
    owner: await seed.user("ranked-owner@example.com"),
    primary: await seed.user("ranked-primary@example.com"),
    shared: await seed.user("ranked-shared@example.com"),
    sister: await seed.user("ranked-sister@example.com"),
  }
  await seed.member(organization, people.owner, "owner")
  await seed.member(organization, people.primary, "primary_owner")
  await seed.member(organization, people.shared, "member")
  await seed.member(organization, people.sister, "member")
  const elsewhere = await seed.organization("Elsewhere", await seed.billingAccount())
  await seed.member(elsewhere, people.shared, "member")
  await seed.member(await seed.organization("Sister", account), people.sister, "member")
  const home = await seed.organization("Home", await seed.billingAccount(), true)
  await seed.member(home, people.sister, "primary_owner")
  const bearers = {
    owner: await seed.session(people.owner),
    primary: await seed.session(people.primary),
    shared: await seed.session(people.shared),
    sister: await seed.session(people.sister),
  }
  const path = `/v1/organizations/${organization}/sessions`
  const { body } = await platform.send("GET", path, { bearer: bearers.owner })
  const listed = body.data.map(({ user }: { user: { email: string } }) => user.email).toSorted()
  expect(listed).toEqual([
    "ranked-owner@example.com",
    "ranked-primary@example.com",
    "ranked-sister@example.com",
  ])
  const idOf = async (bearer: string): Promise<string> => (await whoAmI(bearer)).body.data.id
  const end = async (by: string, whose: string): Promise<number> =>
    (await platform.send("DELETE", `${path}/${await idOf(whose)}`, { bearer: by })).status
  expect(await end(bearers.owner, bearers.primary)).toBe(403)
  expect(await end(bearers.owner, bearers.shared)).toBe(404)
  expect((await whoAmI(bearers.primary)).status).toBe(200)
  expect((await whoAmI(bearers.shared)).status).toBe(200)
  expect(await end(bearers.owner, bearers.sister)).toBe(204)
  expect(await end(bearers.primary, bearers.owner)).toBe(204)
})
