/** The console's session in a browser: how it is kept, how it ends, what cannot use it, and a server that restarts. */
import { once } from "node:events"
import { mkdtempSync, rmSync } from "node:fs"
import { type Server, createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { Locator, Page } from "playwright-core"
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest"
import { createClient } from "../src/contract/client.ts"
import { codeAt, stepAt } from "../src/control/totp.ts"
import { secretOf } from "./authenticator-app.ts"
import { type Browser, openBrowser } from "./browser.ts"
import { owner, signIn, startConsoleServer } from "./console.ts"
import { expectSoundPage, watchFor } from "./console-scene.ts"
import { prepareDirectory } from "./database.ts"
import { freePort } from "./free-port.ts"
import { startServer, type TestServer } from "./server.ts"
import { installMs } from "./run-folder.ts"

let server: TestServer
let browser: Browser
let page: Page
let orgId = ""
const dataDirectory = mkdtempSync(join(tmpdir(), "umpire-console-"))

beforeAll(async () => {
  await prepareDirectory(join(dataDirectory, "database"))
  server = await startConsoleServer({ dataDirectory, env: { UMPIRE_PORT: String(await freePort()) } })
  browser = await openBrowser()
  page = browser.context.pages()[0] ?? (await browser.context.newPage())
  orgId = await signIn(page, server.url)
}, installMs)
afterAll(async () => {
  await browser.close()
  await server.stop()
  rmSync(dataDirectory, { recursive: true, force: true })
})

const session = async () => (await browser.context.cookies()).find(({ name }) => name === "umpire_session")
const click = async (name: string | RegExp): Promise<void> => await page.getByRole("button", { name }).click()

test("scripts cannot read the session cookie, and other sites cannot send it with a write", async () => {
  expect(await session()).toMatchObject({ httpOnly: true, sameSite: "Lax" })
  expect(await page.evaluate("document.cookie")).not.toContain("umpire_session")
})

const target = (): string => `${server.url}/v1/organizations/${orgId}/api_keys`
/** All that a forged write could have changed. */
const state = async (): Promise<string> => {
  const headers = { authorization: `Bearer ${server.key}` }
  const paths = ["", "/api_keys", "/members", "/invites"]
  const answers = paths.map(async (path) => {
    const response = await fetch(`${server.url}/v1/organizations/${orgId}${path}`, { headers })
    expect(response.status).toBe(200)
    return await response.text()
  })
  return (await Promise.all(answers)).join("\n").replaceAll(/"last_used_at":(?:null|"[^"]*")/g, "")
}

describe.each([
  // A cookie knows no ports: this page's requests carry it, and are refused for where they come from.
  ["another port of the same host", "127.0.0.1", 403],
  // This page's writes come without the cookie.
  ["another host", "localhost", 401],
])("a page of %s", (_, host, refused) => {
  let evil: Server
  let attacker: Page
  let before = ""
  beforeAll(async () => {
    evil = createServer((_request, response) => {
      response.setHeader("content-type", "text/html")
      // A form can only send texts, but a text can be JSON.
      response.end(`<!doctype html><title>Prizes</title>
        <form method=post enctype=text/plain action="${target()}">
          <input name='{"name":"forged","permissions":["api-admin"],"scope":"organization","a":"' value='"}'>
          <button>Win</button>
        </form>`)
    }).listen(0, "127.0.0.1")
    await once(evil, "listening")
    attacker = await browser.context.newPage()
    before = await state()
  })
  afterAll(async () => {
    await attacker.close()
    evil.close()
  })
  beforeEach(async () => {
    // A TCP server has an address with a port.
    await attacker.goto(`http://${host}:${(evil.address() as AddressInfo).port}/`)
  })

  test("posts a form in vain", async () => {
    const answered = attacker.waitForResponse(target())
    await attacker.getByRole("button", { name: "Win" }).click()
    const response = await answered
    expect(response.status()).toBe(refused)
    if (refused === 403) expect(await response.text()).toContain("csrf_refused")
    expect(await state()).toBe(before)
  })

  test.each([
    [
      "a simple request",
      { method: "POST", mode: "no-cors", headers: { "content-type": "text/plain" } },
      true,
    ],
    ["JSON", { method: "POST", headers: { "content-type": "application/json" } }, false],
    ["our header", { method: "POST", headers: { "x-umpire-csrf": "1" } }, false],
    ["a DELETE of the session", { method: "DELETE" }, false],
  ])("fetches with credentials in vain: %s", async (name, options, sent) => {
    const address = name.startsWith("a DELETE") ? `${server.url}/v1/session` : target()
    const body = options.method === "POST" ? { body: '{"name":"forged","permissions":["api-admin"]}' } : {}
    const answered = sent ? attacker.waitForResponse(address) : null
    const outcome = await attacker.evaluate(
      `fetch(${JSON.stringify(address)}, ${JSON.stringify({ credentials: "include", ...options, ...body })})
        .then(({ type }) => type, () => "blocked")`,
    )
    // What is not a simple request is asked about first, and never sent.
    expect(outcome).toBe(sent ? "opaque" : "blocked")
    if (answered) expect((await answered).status()).toBe(refused)
    expect(await state()).toBe(before)
  })

  test("reads nothing", async () => {
    const outcome = await attacker.evaluate(
      `fetch(${JSON.stringify(`${server.url}/v1/session`)}, { credentials: "include" }).then((answer) => answer.text(), () => "blocked")`,
    )
    expect(outcome).toBe("blocked")
  })
})

test("the page cannot be framed, and nothing inline runs in it", async () => {
  const { headers } = await fetch(server.url, { headers: { accept: "text/html" } })
  const policy = headers.get("content-security-policy") ?? ""
  expect(policy).toContain("frame-ancestors 'none'")
  expect(policy).not.toContain("unsafe-")
  await page.evaluate(`{
    const script = document.createElement("script")
    script.textContent = "window.inlineRan = true"
    document.body.append(script)
  }`)
  expect(await page.evaluate("window.inlineRan")).toBeUndefined()
})

test("a wrong password is refused in words", async () => {
  const guest = await browser.openElsewhere()
  const options = guest.waitForResponse("**/v1/session/options")
  await guest.goto(server.url)
  await (await options).finished()
  await guest.getByLabel("Email").fill(owner.email)
  await guest.getByLabel("Password").fill("wrong")
  await guest.getByRole("button", { name: "Sign in" }).click()
  await guest.getByText("The email address or the password is wrong.").waitFor()
  // Offered only where it is configured; the page has drawn since it was told.
  expect(await guest.getByRole("button", { name: "Use single sign-on" }).count()).toBe(0)
  const sso = { json: { data: { single_sign_on: true } } }
  await guest.route("**/v1/session/options", async (route) => await route.fulfill(sso))
  await guest.reload()
  await guest.getByRole("button", { name: "Use single sign-on" }).waitFor()
  await guest.context().close()
})

test("a session that ends under a page is renewed in place, with what was typed kept", async () => {
  await page.goto(`${server.url}/o/${orgId}/keys`)
  await click("Create key")
  await page.getByLabel("Name").fill("typed before the end")
  const { value } = (await session()) ?? { value: "" }
  await fetch(`${server.url}/v1/session`, { method: "DELETE", headers: { authorization: `Bearer ${value}` } })
  await page.getByRole("dialog").getByRole("button", { name: "Create key" }).click()
  const ended = page.getByRole("dialog", { name: "Your session has ended" })
  await ended.getByLabel("Password").fill(owner.password)
  await ended.getByRole("button", { name: "Sign in" }).click()
  await expect.poll(async () => await ended.count()).toBe(0)
  await expect.poll(async () => await page.getByLabel("Name").inputValue()).toBe("typed before the end")
  await page.getByRole("dialog").getByRole("button", { name: "Create key" }).click()
  await page.getByLabel("API key", { exact: true }).waitFor()
  await click("I have copied it")
})

test("a server that restarts is waited for calmly, and the page goes on", async () => {
  await page.goto(`${server.url}/o/${orgId}/playground`)
  await page.getByLabel("Text to judge").fill("Kept through the restart.")
  const port = new URL(server.url).port
  await server.stop()
  await click("Decide")
  await page.getByText("Umpire is not answering; it may be restarting.").waitFor()
  const reconnected = await watchFor(page, "body", "Reconnected.")
  server = await startServer({ dataDirectory, env: { UMPIRE_PORT: port } })
  await reconnected()
  await expect
    .poll(async () => await page.getByLabel("Text to judge").inputValue())
    .toBe("Kept through the restart.")
  await click("Decide")
  await page.getByRole("status", { name: "Result" }).getByText("Recorded as").waitFor()
})

const evidence = (): Locator => page.getByLabel("Text to judge")
const decideOn = async (text: string): Promise<void> => {
  await evidence().fill(text)
  const answered = page.waitForResponse((response) => response.url().endsWith("/decisions"))
  await click("Decide")
  await answered
  await page.getByRole("button", { name: "Decide" }).waitFor()
  await page.getByRole("status", { name: "Result" }).getByText("Recorded as").waitFor()
}
const signOut = async (): Promise<void> => {
  await click(/account and appearance/)
  await page.getByRole("menuitem", { name: "Sign out" }).click()
  await page.getByRole("heading", { name: "Sign in to Umpire" }).waitFor()
}
const enter = async (user: { email: string; password: string }): Promise<void> => {
  await page.goto(server.url)
  await page.getByLabel("Email").fill(user.email)
  await page.getByLabel("Password").fill(user.password)
  await click("Sign in")
  await page.getByRole("heading", { name: "Playground" }).waitFor()
}
/** In the command palette, which finds the requests made in this browser. */
const search = async (text: string): Promise<void> => {
  await page.keyboard.press("Control+k")
  await page.getByRole("dialog", { name: "Search" }).getByRole("combobox").fill(text)
}

describe("two users of one browser", () => {
  const bob = { email: "bob@example.com", password: "a password of his own" }

  beforeAll(async () => {
    const api = createClient(server.url, { authorization: `Bearer ${server.key}` })
    const invited = await api.createInvitation({
      params: { org_id: orgId },
      body: { email: bob.email, role: "member" },
    })
    const body = { token: invited.accept_token ?? "", password: bob.password }
    await createClient(server.url, {}).acceptInvitation({ body })
  })

  test("sign-out removes drafts, history and requests from the browser", async () => {
    await page.goto(`${server.url}/o/${orgId}/playground`)
    await decideOn("Only Ada may read this.")
    await expect.poll(async () => await page.evaluate("JSON.stringify(localStorage)")).toContain("Only Ada")
    await signOut()
    expect(await page.evaluate("Object.keys(localStorage)")).toEqual([])
  })

  test("an answer that comes after sign-out is not kept", async () => {
    await enter(owner)
    await page.goto(`${server.url}/o/${orgId}/playground`)
    const held = Promise.withResolvers<void>()
    const asked = Promise.withResolvers<void>()
    await page.route("**/decisions", async (route) => {
      const response = await route.fetch({ timeout: 0 })
      asked.resolve()
      await held.promise
      await route.fulfill({ response })
    })
    await evidence().fill("Answered too late.")
    await click("Decide")
    await asked.promise
    await signOut()
    const late = page.waitForResponse((response) => response.url().endsWith("/decisions"))
    held.resolve()
    await (await late).finished()
    await page.unroute("**/decisions")
    await page.evaluate("new Promise((done) => setTimeout(done, 100))")
    expect(await page.evaluate("Object.keys(localStorage)")).toEqual([])
    expect(await page.evaluate("Object.keys(sessionStorage)")).toEqual([])
  })

  test("the next user sees nothing of the one before, also when that one did not sign out", async () => {
    await enter(owner)
    await decideOn("Ada again.")
    // The session ends without a sign-out, so that what Ada kept stays in the browser.
    await browser.context.clearCookies()
    await enter(bob)
    await click("History")
    await page.getByText("Nothing asked yet").waitFor()
    await click("Close")
    // The page has read what this browser keeps.
    expect(await evidence().inputValue()).not.toContain("Ada")
    await search("Ada again.")
    await page.getByText("No results for “Ada again.”.").waitFor()
    await browser.context.clearCookies()
    await enter(owner)
    await expect.poll(async () => await evidence().inputValue()).toBe("Ada again.")
    await search("Ada again.")
    await page.getByRole("option", { name: "Ada again." }).waitFor()
    await page.keyboard.press("Escape")
  })
})

const newPassword = "a better password"

test("a password is changed, and the old one no longer signs in", async () => {
  await page.goto(`${server.url}/o/${orgId}/settings`)
  const panel = page.getByRole("region", { name: "Your password" })
  await panel.getByLabel("Current password").fill("not it")
  await panel.getByLabel("New password").fill(newPassword)
  await panel.getByRole("button", { name: "Set password" }).click()
  await panel.getByText("the current password is not right").waitFor()
  await panel.getByLabel("Current password").fill(owner.password)
  await panel.getByRole("button", { name: "Set password" }).click()
  await panel.getByText("Your password is set.").waitFor()
  const old = await fetch(`${server.url}/v1/session`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(owner),
  })
  expect(old.status).toBe(401)
})

const door = async (): Promise<void> => {
  await browser.context.clearCookies()
  await page.goto(server.url)
  await page.getByLabel("Email").fill(owner.email)
}

test("a forgotten password leads to the operator, with the command for the address", async () => {
  const guest = await browser.openElsewhere()
  await guest.goto(server.url)
  await guest.getByLabel("Email").fill(owner.email)
  await guest.getByRole("button", { name: "Forgot your password?" }).click()
  await guest.getByText(`umpire users reset ${owner.email}`).waitFor()
  await expectSoundPage(guest)
  await guest.getByRole("button", { name: "Back to sign in" }).click()
  const options = { json: { data: { single_sign_on: false, password_reset: "mail" } } }
  await guest.route("**/v1/session/options", async (route) => await route.fulfill(options))
  const asked: unknown[] = []
  await guest.route("**/v1/session/reset", async (route) => {
    asked.push(route.request().postDataJSON())
    await route.fulfill({ status: 204 })
  })
  await guest.reload()
  await guest.getByLabel("Email").fill(owner.email)
  await guest.getByRole("button", { name: "Forgot your password?" }).click()
  await guest.getByRole("button", { name: "Send me a link" }).click()
  await guest.getByText("the link is on its way").waitFor()
  expect(asked).toEqual([{ email: owner.email }])
  // Where the link of the mail leads to; this one was never sent.
  await guest.goto(`${server.url}/sign-in#reset=never-sent`)
  await guest.getByLabel("New password").fill("a new password")
  await expectSoundPage(guest)
  await guest.getByRole("button", { name: "Set password and sign in" }).click()
  await guest.getByText("the link is unknown, used or expired").waitFor()
  expect(guest.url()).not.toContain("never-sent")
  await guest.context().close()
})

test("two-factor sign-in is set up, asked for, recovered from and switched off", async () => {
  await page.goto(`${server.url}/o/${orgId}/settings`)
  const panel = page.getByRole("region", { name: "Two-factor sign-in" })
  const dialog = page.getByRole("dialog")
  await panel.getByRole("button", { name: "Set up" }).click()
  await dialog.getByLabel("Current password").fill("not it")
  await dialog.getByRole("button", { name: "Continue" }).click()
  await dialog.getByText("the current password is not right").waitFor()
  await dialog.getByLabel("Current password").fill(newPassword)
  await dialog.getByRole("button", { name: "Continue" }).click()
  const key = ((await dialog.getByLabel("Key for the app").textContent()) ?? "").replaceAll(" ", "")
  const code = (ahead: number): string => codeAt(secretOf(key), stepAt(Date.now()) + ahead)
  const codeField = page.getByLabel("Code of your authenticator app")
  await dialog.getByRole("img", { name: "QR code of the key" }).waitFor()
  await expectSoundPage(page)
  await codeField.fill("000000")
  await dialog.getByRole("button", { name: "Switch on" }).click()
  await dialog.getByText("the code is not right").waitFor()
  await codeField.fill(code(-1))
  await dialog.getByRole("button", { name: "Switch on" }).click()
  const codes = dialog.getByRole("list", { name: "Recovery codes" }).getByRole("listitem")
  await codes.last().waitFor()
  const recovery = await codes.allTextContents()
  expect(recovery).toHaveLength(10)
  await expectSoundPage(page)
  await dialog.getByRole("button", { name: "I have kept them" }).click()
  await panel.getByText("10 recovery codes left").waitFor()

  await door()
  await page.getByLabel("Password").fill(newPassword)
  expect(await codeField.count()).toBe(0)
  await click("Sign in")
  await codeField.fill(recovery[0]?.toUpperCase() ?? "")
  await click("Sign in")
  await page.getByRole("heading", { name: "Playground" }).waitFor()
  await door()
  await page.getByLabel("Password").fill(newPassword)
  await click("Sign in")
  await codeField.fill(recovery[0] ?? "")
  await click("Sign in")
  await page.getByText("the code is not right, or was used already").waitFor()
  await codeField.fill(code(0))
  await click("Sign in")
  await page.getByRole("heading", { name: "Playground" }).waitFor()

  await page.goto(`${server.url}/o/${orgId}/settings`)
  await panel.getByText("9 recovery codes left").waitFor()
  await panel.getByRole("button", { name: "Switch off" }).click()
  await codeField.fill(recovery[1] ?? "")
  await dialog.getByRole("button", { name: "Switch off" }).click()
  await panel.getByRole("button", { name: "Set up" }).waitFor()
})

test("a passkey is added under Settings, signs in, and is removed", async () => {
  // Browsers use passkeys at a host name only.
  const url = server.url.replace("127.0.0.1", "localhost")
  const guest = await browser.openElsewhere()
  const device = await guest.context().newCDPSession(guest)
  await device.send("WebAuthn.enable")
  await device.send("WebAuthn.addVirtualAuthenticator", {
    options: {
      protocol: "ctap2",
      transport: "internal",
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
    },
  })
  const press = async (name: string): Promise<void> =>
    await guest.getByRole("button", { name, exact: true }).click()
  await guest.goto(url)
  await guest.getByLabel("Email").fill(owner.email)
  await guest.getByLabel("Password").fill(newPassword)
  await press("Sign in")
  await guest.getByRole("heading", { name: "Playground" }).waitFor()
  await guest.goto(`${url}/o/${orgId}/settings`)
  await press("Add a passkey")
  await guest.getByLabel("Current password", { exact: true }).last().fill(newPassword)
  await guest.getByLabel("Name", { exact: true }).last().fill("Ada's phone")
  await press("Continue on this device")
  const list = guest.getByRole("list", { name: "Passkeys" })
  await list.getByText("not used yet").waitFor()
  await expectSoundPage(guest)
  await guest.context().clearCookies()
  await guest.goto(url)
  await press("Use a passkey")
  await guest.getByRole("heading", { name: "Playground" }).waitFor()
  await guest.goto(`${url}/o/${orgId}/settings`)
  await list.getByText("used just now").waitFor()
  await press("Remove Ada's phone")
  await guest.getByRole("dialog").getByRole("button", { name: "Remove", exact: true }).click()
  await list.waitFor({ state: "detached" })
  await guest.context().clearCookies()
  await guest.goto(url)
  await press("Use a passkey")
  await guest.getByText("the passkey is unknown").waitFor()
  await guest.context().close()
  // At the address of the machine, Settings lead to where passkeys work.
  await page.goto(`${server.url}/o/${orgId}/settings`)
  await page.getByRole("link", { name: `open this page at ${url}` }).waitFor()
})

test("signing out ends the session on the server too", async () => {
  const { value } = (await session()) ?? { value: "" }
  await click(/account and appearance/)
  await page.getByRole("menuitem", { name: "Sign out" }).click()
  await page.getByRole("heading", { name: "Sign in to Umpire" }).waitFor()
  const again = await fetch(`${server.url}/v1/session`, { headers: { authorization: `Bearer ${value}` } })
  expect(again.status).toBe(401)
  await page.goto(`${server.url}/o/${orgId}/keys`)
  await page.getByRole("heading", { name: "Sign in to Umpire" }).waitFor()
})
