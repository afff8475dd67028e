/** The console in a browser, from the first start to the first answer. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import type { Page } from "playwright-core"
import { afterAll, beforeAll, expect, test } from "vitest"
import { type Browser, openBrowser } from "./browser.ts"
import { type TestServer, startServer } from "./server.ts"
import { installMs } from "./run-folder.ts"

let server: TestServer
let browser: Browser
let page: Page
const link = (): string => {
  const welcome = readFileSync(join(server.dataDirectory, "first-start.txt"), "utf8")
  return /^ {2}(http\S+#link=\S+)$/m.exec(welcome)?.[1] ?? ""
}
const click = async (name: string | RegExp): Promise<void> => await page.getByRole("button", { name }).click()

beforeAll(async () => {
  server = await startServer({ bootstrap: false })
  browser = await openBrowser()
  page = await browser.context.newPage()
}, installMs)
afterAll(async () => {
  await browser.close()
  await server.stop()
})

test("the link of the first start leads to a screen that asks for an address and a password", async () => {
  expect(link()).not.toBe("")
  await page.goto(link())
  await page.getByRole("heading", { name: "Welcome to Umpire" }).waitFor()
  expect(page.url()).not.toContain("link=")
  await page.getByLabel("Email").fill("ada@example.com")
  await page.getByLabel("Password").fill("a first password")
  await click("Save and continue")
  await page.getByRole("heading", { name: "Playground" }).waitFor()
})

test("a first answer ticks the first steps, which can be hidden", async () => {
  const steps = page.getByRole("region", { name: "Getting started" })
  await steps.getByRole("listitem", { name: "Set a password: done" }).waitFor()
  await steps.getByRole("listitem", { name: "Make a first decision: to do" }).waitFor()
  await click("Decide")
  const answer = page.getByRole("group", { name: "Answer to question 1" })
  await answer.getByText("Yes", { exact: true }).waitFor()
  await steps.getByRole("listitem", { name: "Make a first decision: done" }).waitFor()
  await steps.getByRole("link", { name: "Create a key" }).click()
  await page.getByRole("dialog").getByLabel("Name").fill("program")
  await page.getByRole("dialog").getByRole("button", { name: "Create key" }).click()
  await click("I have copied it")
  await page.goto(server.url)
  await steps.getByRole("listitem", { name: "Create a key: done" }).waitFor()
  await click("Hide getting started")
  await page.reload()
  await page.getByRole("heading", { name: "Playground" }).waitFor()
  await expect.poll(async () => await steps.count()).toBe(0)
})

test("one region needs no table of regions", async () => {
  await page.getByRole("link", { name: "Routing" }).click()
  await page.getByRole("list", { name: "Regions tried in order" }).getByText("local").waitFor()
  await expect.poll(async () => await page.getByRole("table", { name: "Regions" }).count()).toBe(0)
})

test("chat says what the shipped model is, and how to add a better one", async () => {
  await page.getByRole("link", { name: "Chat" }).click()
  await page.getByText("ships with Umpire to try the API without a download").waitFor()
  await page.getByText("facts, sums and long answers are often wrong").waitFor()
  await click("Connect a better model")
  await page.getByLabel("Provider").selectOption("Ollama")
  await expect
    .poll(async () => await page.getByLabel("Address").inputValue())
    .toBe("http://127.0.0.1:11434/v1")
  await page.keyboard.press("Escape")
  await click("Discard")
})

test("the new address and password sign in, and the link works once", async () => {
  await click(/account and appearance/)
  await page.getByRole("menuitem", { name: "Sign out" }).click()
  await page.getByLabel("Email").waitFor()
  // Pasted into the open page, which it does not load again.
  await page.goto(link())
  await page.getByText("the link is unknown, used or expired. Sign in with your password").waitFor()
  expect(page.url()).not.toContain("link=")
  await page.getByLabel("Email").fill("ada@example.com")
  await page.getByLabel("Password").fill("a first password")
  await click("Sign in")
  await page.getByRole("heading", { name: "Playground" }).waitFor()
  await page.goto("about:blank")
  await page.goto(link())
  await page.getByText("the link is unknown, used or expired").waitFor()
  await expect.poll(async () => await page.getByLabel("Email").isVisible()).toBe(true)
})
