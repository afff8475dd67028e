/** The console in other languages, in a browser: which one is shown, how it is chosen, and that nothing stays English. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import type { Page } from "playwright-core"
import { afterAll, beforeAll, expect, test } from "vitest"
import { type Browser, openBrowser } from "./browser.ts"
import { consolePages, owner, ownerOf, startConsoleServer } from "./console.ts"
import type { TestServer } from "./server.ts"
import { installMs } from "./run-folder.ts"

const catalogs = join(import.meta.dirname, "..", "console", "src", "i18n", "catalogs")
const catalogOf = (language: string): Readonly<Record<string, unknown>> =>
  JSON.parse(readFileSync(join(catalogs, `${language}.json`), "utf8")) as Readonly<Record<string, unknown>>
const german = catalogOf("de")
const japanese = catalogOf("ja")

/** What a text reads in the language; fails where it reads the same, which would prove nothing. */
function translated(catalog: Readonly<Record<string, unknown>>, text: string): string {
  const found = catalog[text]
  if (typeof found !== "string" || found === text) throw new Error(`“${text}” has no translation`)
  return found
}
const de = (text: string): string => translated(german, text)

let server: TestServer
let browser: Browser
let page: Page
let orgId = ""
const open = async (path: string): Promise<void> => void (await page.goto(`${server.url}/o/${orgId}/${path}`))
const language = async (of: Page): Promise<unknown> =>
  await of.evaluate("document.documentElement.lang + ' ' + document.documentElement.dir")

beforeAll(async () => {
  server = await startConsoleServer()
  browser = await openBrowser({ locale: "de-DE", timezoneId: "UTC" })
  page = await browser.context.newPage()
}, installMs)
afterAll(async () => {
  await browser.close()
  await server.stop()
})

test("a browser that prefers German signs in in German", async () => {
  await page.goto(server.url)
  await page.getByRole("heading", { name: de("Sign in to Umpire") }).waitFor()
  expect(await language(page)).toBe("de ltr")
  await page.getByLabel(de("Email")).fill(owner.email)
  await page.getByLabel(de("Password")).fill(owner.password)
  await page.getByRole("button", { name: de("Sign in") }).click()
  await page.getByPlaceholder(de("Paste the text to judge, or drop a file here.")).waitFor()
  orgId = /\/o\/([^/]+)/.exec(page.url())?.[1] ?? ""
})

test("what is to be tried at first is in German, and a model that has learnt it decides", async () => {
  const model = page.getByLabel(de("Model"), { exact: true })
  await expect.poll(async () => await model.inputValue()).toBe("umpire-decide-multilingual")
  const evidence = page.getByPlaceholder(de("Paste the text to judge, or drop a file here."))
  expect(await evidence.inputValue()).toMatch(/^Das Paket kam zwei Wochen zu spät/)
  await page.getByRole("button", { name: de("Examples") }).click()
  await page.getByRole("menuitem", { name: "Routing" }).click()
  expect(await evidence.inputValue()).toMatch(/^Hallo, meine Kreditkarte/)
  await page.getByRole("button", { name: de("Decide") }).click()
  const result = page.getByRole("status", { name: de("Result") })
  await expect.poll(async () => await result.textContent()).toMatch(/Deutsch.*umpire-decide-multilingual/)
  expect(await page.getByRole("note", { name: de("Take care") }).count()).toBe(0)
})

test("dates and amounts are written as German writes them", async () => {
  const { api } = await ownerOf(server)
  const expires_at = "2031-03-04T12:00:00.000Z"
  const body = {
    name: "nightly",
    permissions: ["inference" as const],
    scope: "organization" as const,
    expires_at,
  }
  await api.createApiKey({ params: { org_id: orgId }, body })
  await open("keys")
  const row = page.getByRole("row").filter({ hasText: "nightly" })
  await row.getByText("4. März 2031").waitFor()
  await open("billing")
  await page
    .getByText(/^\d+(?:,\d\d)?\s\$$/)
    .first()
    .waitFor()
})

test("the tabs of a question set are all to be seen, however long their names are", async () => {
  const { api } = await ownerOf(server)
  const questions = [{ type: "predicate" as const, name: "refund", instructions: "Is a refund asked for?" }]
  await api.createQuestionSet({
    params: { org_id: orgId },
    body: { name: "tabs", model: "umpire-decide", questions },
  })
  await open("sets/tabs")
  const tabs = page.getByRole("navigation", { name: de("Parts of the set") })
  await tabs.getByRole("link", { name: de("Shadow") }).waitFor()
  const cutOff = await tabs.evaluate(
    (nav: { scrollWidth: number; clientWidth: number }) => nav.scrollWidth - nav.clientWidth,
  )
  expect(cutOff).toBe(0)
})

/** What stays as it is: the names of fields in the audit log. */
const data = new Set(["name"])

/** The texts of nodes and the names of controls, as they are. */
const shown = `[
  ...[...document.querySelectorAll("body *")].flatMap((element) =>
    ["aria-label", "title", "placeholder", "alt"].flatMap((name) => element.getAttribute(name) ?? [])),
  ...(() => {
    const found = []
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
    while (walker.nextNode()) found.push(walker.currentNode.data.trim())
    return found
  })(),
]`

test("no text that has a translation stays English", async () => {
  const left = new Map<string, string[]>()
  for (const [path] of consolePages) {
    await open(path)
    await page.getByRole("heading", { level: 1 }).waitFor()
    await page.waitForLoadState("networkidle")
    const texts = (await page.evaluate(shown)) as string[]
    expect(texts.length).toBeGreaterThan(20)
    const english = texts.filter((text) => typeof german[text] === "string" && german[text] !== text)
    // The reverse is no mistake: a translation may read as another message does in English.
    const wrong = english.filter((text) => !Object.values(german).includes(text) && !data.has(text))
    if (wrong.length > 0) left.set(path, wrong)
  }
  expect([...left]).toEqual([])
})

test("Japanese, once chosen in the menu, is kept over a reload", async () => {
  await open("keys")
  await page.getByRole("button", { name: de("account and appearance") }).click()
  await Promise.all([page.waitForEvent("load"), page.getByRole("menuitem", { name: "日本語" }).click()])
  const heading = page.getByRole("heading", { name: translated(japanese, "API keys"), level: 1 })
  await heading.waitFor()
  expect(await language(page)).toBe("ja ltr")
  await page.reload()
  await heading.waitFor()
  expect(await language(page)).toBe("ja ltr")
})

test("the language of the browser comes back when it is chosen", async () => {
  await page.getByRole("button", { name: translated(japanese, "account and appearance") }).click()
  await Promise.all([
    page.waitForEvent("load"),
    page.getByRole("menuitem", { name: translated(japanese, "Language of the browser") }).click(),
  ])
  await page.getByRole("heading", { name: de("API keys"), level: 1 }).waitFor()
})

test("a browser whose languages the console lacks is answered in English", async () => {
  const other = await openBrowser({ locale: "fi-FI" })
  try {
    const stranger = await other.context.newPage()
    await stranger.goto(server.url)
    await stranger.getByRole("heading", { name: "Sign in to Umpire" }).waitFor()
    expect(await language(stranger)).toBe("en ltr")
  } finally {
    await other.close()
  }
})
