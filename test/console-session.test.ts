/** The console's session in a browser: how it is kept, how it ends, what cannot use it, and a server that restarts. */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { Page } from "playwright-core"
import { afterAll, beforeAll, expect, test } from "vitest"
import { type Browser, openBrowser } from "./browser.ts"
import { owner, signIn, startConsoleServer } from "./console.ts"
import { prepareDirectory } from "./database.ts"
import { startServer, type TestServer } from "./server.ts"

let server: TestServer
let browser: Browser
let page: Page
let orgId = ""
const dataDirectory = mkdtempSync(join(tmpdir(), "umpire-console-"))

beforeAll(async () => {
  await prepareDirectory(join(dataDirectory, "database"))
  server = await startConsoleServer({ dataDirectory })
  browser = await openBrowser()
  page = browser.context.pages()[0] ?? (await browser.context.newPage())
  orgId = await signIn(page, server.url)
})
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

test("a form of another site that posts with the cookie is refused", async () => {
  const { value } = (await session()) ?? { value: "" }
  const forged = await fetch(`${server.url}/v1/organizations/${orgId}/api_keys`, {
    method: "POST",
    headers: {
      cookie: `umpire_session=${value}`,
      origin: "https://evil.example.com",
      "content-type": "application/json",
    },
    body: JSON.stringify({ name: "forged", permissions: ["inference"] }),
  })
  expect([forged.status, await forged.text()]).toEqual([403, expect.stringContaining("csrf_refused")])
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
  const other = await browser.context.browser()?.newContext()
  const guest = (await other?.newPage()) ?? page
  await guest.goto(server.url)
  await guest.getByLabel("Email").fill(owner.email)
  await guest.getByLabel("Password").fill("wrong")
  await guest.getByRole("button", { name: "Sign in" }).click()
  await guest.getByText("The email address or the password is not right.").waitFor()
  await guest.getByRole("button", { name: "Use single sign-on" }).click()
  await guest.getByText("Single sign-on is not set up on this server.").waitFor()
  await other?.close()
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
  expect(await page.getByLabel("Name").inputValue()).toBe("typed before the end")
  await page.getByRole("dialog").getByRole("button", { name: "Create key" }).click()
  await page.getByLabel("API key", { exact: true }).waitFor()
  await click("I have stored it")
})

test("a server that restarts is waited for calmly, and the page goes on", async () => {
  await page.goto(`${server.url}/o/${orgId}/playground`)
  await page.getByLabel("Evidence text").fill("Kept through the restart.")
  const port = new URL(server.url).port
  await server.stop()
  await click("Decide")
  await page.getByText("Umpire is not answering; it may be restarting.").waitFor()
  server = await startServer({ dataDirectory, env: { UMPIRE_PORT: port } })
  await page.getByText("Connected again.").waitFor()
  expect(await page.getByLabel("Evidence text").inputValue()).toBe("Kept through the restart.")
  await click("Decide")
  await page.getByRole("group", { name: "Answer to question 1" }).waitFor()
})

test("a password is changed, and the old one no longer signs in", async () => {
  await page.goto(`${server.url}/o/${orgId}/settings`)
  const panel = page.getByRole("region", { name: "Your password" })
  await panel.getByLabel("Current password").fill("not it")
  await panel.getByLabel("New password").fill("a better password")
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
