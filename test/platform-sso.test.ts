/** Single sign-on against a real OpenID Connect provider, run here. */
import { type Server, createServer } from "node:http"
import type { AddressInfo } from "node:net"
import Provider from "oidc-provider"
import { afterAll, beforeAll, expect, test } from "vitest"
import { silentLog } from "../src/base/log.ts"
import { createOneTimeLink } from "../src/control/sessions.ts"
import { createOidcProvider } from "../src/control/sso-provider.ts"
import { pageAudit } from "../src/store/audit.ts"
import { updateOrganization } from "../src/store/organizations.ts"
import { openTestDatabase } from "./database.ts"
import { type Answer, type Platform, seeder, startPlatform } from "./platform.ts"

interface Account {
  readonly email: string
  readonly email_verified: boolean
  readonly groups?: readonly string[]
}

/** The people that the provider knows, by subject. */
const accounts: Record<string, Account> = {
  ada: { email: "ada@example.com", email_verified: true },
  unverified: { email: "ada@example.com", email_verified: false },
  stranger: { email: "stranger@example.com", email_verified: true },
  hired: { email: "hired@Hiring.example", email_verified: true },
  forger: { email: "forger@hiring.example", email_verified: false },
  grouped: { email: "grouped@elsewhere.example", email_verified: true, groups: ["staff", "ops"] },
  victim: { email: "victim@corp.example", email_verified: true },
  boss: { email: "boss@strict.example", email_verified: true },
}
const clientSecret = "a client secret of the tests"

let identityServer: Server
let platform: Platform
let adaId: string

beforeAll(async () => {
  const database = await openTestDatabase()
  // Listens before it can answer, so that its port stays its own.
  identityServer = createServer()
  await new Promise<void>((resolve) => identityServer.listen(0, "127.0.0.1", resolve))
  // A listening TCP server has an address of this form.
  const { port } = identityServer.address() as AddressInfo
  const issuerAddress = new URL(`http://127.0.0.1:${port}`)
  const scope = "openid email profile groups"
  const settings = {
    issuer: issuerAddress.href,
    clientId: "umpire",
    clientSecret,
    scope,
    groupsClaim: "groups",
  }
  const place = { url: "" }
  platform = await startPlatform(database, {
    deps: {
      singleSignOn: {
        provider: createOidcProvider(settings),
        verifiedEmailOnly: true,
        publicUrl: () => place.url,
        log: silentLog,
      },
    },
  })
  place.url = platform.url
  adaId = await seeder(platform).user("Ada@example.com")
  provide(issuerAddress, `${platform.url}/v1/session/sso/callback`)
})

afterAll(async () => {
  await platform.close()
  await platform.database.close()
  identityServer.closeAllConnections()
  await new Promise((resolve) => identityServer.close(resolve))
})

function provide(address: URL, redirectUri: string): void {
  const provider = new Provider(address.origin, {
    clients: [{ client_id: "umpire", client_secret: clientSecret, redirect_uris: [redirectUri] }],
    claims: { email: ["email", "email_verified"], profile: ["name"], groups: ["groups"] },
    scopes: ["openid", "email", "profile", "groups"],
    findAccount: (_context, id) => ({ accountId: id, claims: async () => ({ sub: id, ...accounts[id] }) }),
    // The provider's own pages for development let any subject sign in with any password.
    features: { devInteractions: { enabled: true } },
    pkce: { required: () => true },
  })
  const answer = provider.callback()
  identityServer.on("request", (request, response) => void answer(request, response))
}

/** As much of a browser as signing in takes: cookies by origin, redirects, and forms. */
class Browser {
  readonly #cookies = new Map<string, Map<string, string>>()

  cookie(url: string, name: string): string | undefined {
    return this.#cookies.get(new URL(url).origin)?.get(name)
  }

  async visit(url: string, form?: Record<string, string>): Promise<{ url: string; text: string }> {
    let next = url
    let body = form
    for (let hop = 0; hop < 20; hop++) {
      const response = await this.#request(next, body)
      const location = response.headers.get("location")
      if (location === null) return { url: next, text: await response.text() }
      next = new URL(location, next).href
      body = undefined
      // The console is not served here: arriving at it is the end of the way.
      if (new URL(next).origin === platform.url && new URL(next).pathname === "/")
        return { url: next, text: "" }
    }
    throw new Error("the redirects do not end")
  }

  async #request(url: string, form: Record<string, string> | undefined): Promise<Response> {
    const jar = this.#cookies.get(new URL(url).origin) ?? new Map<string, string>()
    this.#cookies.set(new URL(url).origin, jar)
    const response = await fetch(url, {
      redirect: "manual",
      headers: { cookie: [...jar].map(([name, value]) => `${name}=${value}`).join("; ") },
      ...(form ? { method: "POST", body: new URLSearchParams(form) } : {}),
    })
    for (const cookie of response.headers.getSetCookie()) {
      const [pair = ""] = cookie.split(";")
      const at = pair.indexOf("=")
      if (/max-age=0|expires=thu, 01 jan 1970/i.test(cookie)) jar.delete(pair.slice(0, at))
      else jar.set(pair.slice(0, at), pair.slice(at + 1))
    }
    return response
  }
}

const formOf = (page: { url: string; text: string }): string =>
  new URL(/<form[^>]*action="([^"]+)"/.exec(page.text)?.[1] ?? "", page.url).href

/** Starts at Umpire, signs in and consents at the provider, and answers where that ends. */
async function signIn(browser: Browser, subject: string): Promise<string> {
  let page = await browser.visit(`${platform.url}/v1/session/sso`)
  page = await browser.visit(formOf(page), { prompt: "login", login: subject, password: "any" })
  if (page.text.includes("<form")) page = await browser.visit(formOf(page), { prompt: "consent" })
  return page.url
}

async function whoIs(browser: Browser): Promise<Answer> {
  const token = browser.cookie(platform.url, "umpire_session")
  return await platform.send("GET", "/v1/session", { bearer: token ?? "ums_none" })
}

test("a user known by a verified address is signed in, and stays known when the address changes", async () => {
  const first = new Browser()
  expect(await signIn(first, "ada")).toBe(`${platform.url}/`)
  expect((await whoIs(first)).body.data.user.id).toBe(adaId)
  accounts["ada"] = { email: "renamed@example.com", email_verified: true }
  const second = new Browser()
  expect(await signIn(second, "ada")).toBe(`${platform.url}/`)
  expect((await whoIs(second)).body.data.user.id).toBe(adaId)
})

test("the sign-in page is told that there is a provider", async () => {
  const options = await platform.send("GET", "/v1/session/options")
  expect(options.body).toMatchObject({ data: { single_sign_on: true, password_reset: "operator" } })
})

test.each(["unverified", "stranger"])(
  "the subject %s is nobody here, and is told so at the console",
  async (subject) => {
    const browser = new Browser()
    expect(await signIn(browser, subject)).toBe(`${platform.url}/?sso_error=unknown_user`)
    expect((await whoIs(browser)).status).toBe(401)
  },
)

test("a callback without the browser that began it signs nobody in", async () => {
  const browser = new Browser()
  const page = await browser.visit(`${platform.url}/v1/session/sso`)
  expect(page.text).toContain("<form")
  const stolen = await platform.send("GET", "/v1/session/sso/callback?code=x&state=y")
  expect([stolen.status, stolen.headers.get("location")]).toEqual([303, "/?sso_error=expired"])
  const mixed = await new Browser().visit(`${platform.url}/v1/session/sso/callback?code=x&state=y`)
  expect(mixed.url).toBe(`${platform.url}/?sso_error=expired`)
})

test("a forged state is refused although the browser began a sign-in", async () => {
  const browser = new Browser()
  await browser.visit(`${platform.url}/v1/session/sso`)
  const forged = await browser.visit(`${platform.url}/v1/session/sso/callback?code=x&state=forged`)
  expect(forged.url).toBe(`${platform.url}/?sso_error=refused`)
  expect((await whoIs(browser)).status).toBe(401)
})

test("an invitation is accepted without a password where single sign-on is configured", async () => {
  const seed = seeder(platform)
  const org = await seed.organization("Acme", await seed.billingAccount())
  await seed.member(org, adaId, "primary_owner")
  const sent = await platform.send("POST", `/v1/organizations/${org}/invites`, {
    bearer: await seed.session(adaId),
    body: { email: accounts["stranger"]?.email, role: "member" },
  })
  const body = { token: sent.body.data.accept_token }
  expect((await platform.send("POST", "/v1/invites/accept", { body })).status).toBe(200)
  const browser = new Browser()
  expect(await signIn(browser, "stranger")).toBe(`${platform.url}/`)
})

async function organizationsOf(browser: Browser): Promise<Record<string, string>> {
  const bearer = browser.cookie(platform.url, "umpire_session") ?? ""
  const { body } = await platform.send("GET", "/v1/organizations", { bearer })
  return Object.fromEntries(body.data.map(({ name, role }: { name: string; role: string }) => [name, role]))
}

async function taking(name: string, changes: Parameters<typeof updateOrganization>[2]): Promise<string> {
  const seed = seeder(platform)
  const id = await seed.organization(name, await seed.billingAccount())
  await updateOrganization(platform.database, id, changes, new Date())
  platform.invalidate({ table: "organizations", id })
  return id
}

test("a verified address of a domain makes a user and a member, an unverified one nobody", async () => {
  await taking("Hiring", { ssoEmailDomains: ["hiring.example"] })
  const browser = new Browser()
  expect(await signIn(browser, "hired")).toBe(`${platform.url}/`)
  expect(await organizationsOf(browser)).toEqual({ Hiring: "member" })
  expect(await signIn(new Browser(), "forger")).toBe(`${platform.url}/?sso_error=unknown_user`)
})

test("a group of the provider makes a member with the organization's role, where it is named only", async () => {
  await taking("Operations", { ssoGroups: ["ops"], ssoRole: "owner" })
  await taking("Board", { ssoGroups: ["board"] })
  const browser = new Browser()
  expect(await signIn(browser, "grouped")).toBe(`${platform.url}/`)
  expect(await organizationsOf(browser)).toEqual({ Operations: "owner" })
})

test("whoever made a user with the address of another is out once that person signs in", async () => {
  await taking("Corp", { ssoEmailDomains: ["corp.example"] })
  const seed = seeder(platform)
  const attackerId = await seed.user("attacker@example.com")
  const trap = await seed.organization("Trap", await seed.billingAccount())
  await seed.member(trap, attackerId, "primary_owner")
  const sent = await platform.send("POST", `/v1/organizations/${trap}/invites`, {
    bearer: await seed.session(attackerId),
    body: { email: "victim@corp.example", role: "member" },
  })
  const password = "known to the attacker"
  const accepted = await platform.send("POST", "/v1/invites/accept", {
    body: { token: sent.body.data.accept_token, password },
  })
  const { user, session } = accepted.body.data
  const { link } = await createOneTimeLink(
    platform.database,
    { userId: user.id, purpose: "sign_in" },
    new Date(),
  )
  const attempt = async (body: object): Promise<number> =>
    (await platform.send("POST", "/v1/session", { body })).status
  const byPassword = { email: "victim@corp.example", password }
  expect(await attempt(byPassword)).toBe(200)
  expect((await platform.send("GET", "/v1/session", { bearer: session.token })).status).toBe(200)

  const browser = new Browser()
  expect(await signIn(browser, "victim")).toBe(`${platform.url}/`)
  expect(await organizationsOf(browser)).toEqual({ Corp: "member", Trap: "member" })
  expect((await platform.send("GET", "/v1/session", { bearer: session.token })).status).toBe(401)
  expect([await attempt(byPassword), await attempt({ link })]).toEqual([401, 401])
  const { items } = await pageAudit(platform.database, trap, { action: "user.bind_sso" }, { limit: 2 })
  expect(items).toMatchObject([{ resourceId: user.id, actorId: user.id }])

  // Later sign-ins end nothing.
  const later = new Browser()
  await signIn(later, "victim")
  expect([(await whoIs(browser)).status, (await whoIs(later)).status]).toEqual([200, 200])
})

test("an organization that requires single sign-on refuses other sessions, and only such a session can require it", async () => {
  const org = await taking("Strict", { ssoEmailDomains: ["strict.example"], ssoRole: "owner" })
  const seed = seeder(platform)
  const bossId = await seed.user("boss@strict.example")
  await seed.member(org, bossId, "owner")
  const browser = new Browser()
  await signIn(browser, "boss")
  const other = await seed.session(bossId)
  const bearer = browser.cookie(platform.url, "umpire_session") ?? ""
  const path = `/v1/organizations/${org}`
  const require = async (by: string): Promise<number> =>
    (await platform.send("PUT", `${path}/single_sign_on`, { bearer: by, body: { required: true } })).status
  expect([await require(other), await require(bearer)]).toEqual([409, 200])
  const refused = await platform.send("GET", path, { bearer: other })
  expect([refused.status, refused.body.error.code]).toEqual([403, "single_sign_on_required"])
  expect((await platform.send("GET", path, { bearer })).status).toBe(200)
  const key = await seed.key(org, ["api-read"])
  expect((await platform.send("GET", path, { bearer: key.value })).status).toBe(200)
})
