/** One server and one signed-in browser for all tests of the console's pages, and the gestures that they share. */
import { readFileSync } from "node:fs"
import { createRequire } from "node:module"
import type { Locator, Page } from "playwright-core"
import { afterAll, beforeAll, beforeEach, expect } from "vitest"
import { type Browser, openBrowser } from "./browser.ts"
import { consolePages, signIn, startConsoleServer } from "./console.ts"
import type { TestServer } from "./server.ts"
import { installMs } from "./run-folder.ts"

export interface Scene {
  readonly server: TestServer
  readonly browser: Browser
  readonly page: Page
  readonly orgId: string
  /** What the browser complained about; the policy of the page forbids what it complains about most. */
  readonly complaints: string[]
  open(path: string): Promise<void>
  click(name: string | RegExp): Promise<void>
  pick(menu: string, item: string): Promise<void>
  dialog(): Locator
  /** Presses a button of the open dialog. */
  submit(name: string): Promise<void>
  /** Presses it twice before the page can draw anything. */
  submitTwice(name: string): Promise<void>
  expectValue(label: string, value: string): Promise<void>
  /** Resolves when nothing on the page waits for the server any more. */
  settled(): Promise<void>
  /** Serious accessibility problems of the page as it stands: of every kind, or of the rules named. */
  problems(rules?: readonly string[]): Promise<string[]>
  /** By how much the page is wider than its place in the window. */
  overflow(): Promise<unknown>
  /** In the light everything is looked at; in the dark only the colors differ; on a phone it must fit. */
  expectSound(): Promise<void>
  close(): Promise<void>
}

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8")

export const desktop = { width: 1280, height: 860 }
export const phone = { width: 390, height: 844 }

/** A scene for all tests of a file. */
export function useScene(): Scene {
  // Filled before any test runs.
  const scene = {} as Scene
  beforeAll(async () => void Object.assign(scene, await openScene()), installMs)
  afterAll(async () => await scene.close())
  beforeEach(() => {
    scene.complaints.length = 0
  })
  return scene
}

async function openScene(): Promise<Scene> {
  const [server, browser] = await Promise.all([
    startConsoleServer(),
    openBrowser({ permissions: ["clipboard-read", "clipboard-write"] }),
  ])
  const page = browser.context.pages()[0] ?? (await browser.context.newPage())
  const complaints: string[] = []
  page.on("pageerror", (error) => complaints.push(String(error)))
  page.on("console", (message) => {
    // A refused request is the server's answer, not a fault of the page.
    if (message.type() === "error" && !message.text().startsWith("Failed to load resource"))
      complaints.push(message.text())
  })
  const orgId = await signIn(page, server.url)
  const click = async (name: string | RegExp): Promise<void> =>
    await page.getByRole("button", { name }).click()
  const dialog = (): Locator => page.getByRole("dialog")
  const settled = async (): Promise<void> =>
    await page
      .getByRole("status")
      .filter({ hasText: /^\s*Loading/ })
      .first()
      .waitFor({ state: "detached" })
  const problems = async (rules: readonly string[] = []): Promise<string[]> =>
    await seriousProblems(page, rules)
  const overflow = async (): Promise<unknown> => await overflowOf(page)
  return {
    server,
    browser,
    page,
    orgId,
    complaints,
    open: async (path) => {
      await page.goto(`${server.url}/o/${orgId}/${path}`)
      const heading = consolePages.find(([one]) => one === path)?.[1] ?? ""
      await page.getByRole("heading", { name: heading, level: 1 }).waitFor()
      await page.locator("[aria-busy=true]").first().waitFor({ state: "detached" })
    },
    click,
    pick: async (menu, item) => {
      await click(menu)
      await page.getByRole("menuitem", { name: item }).click()
    },
    dialog,
    submit: async (name) => await dialog().getByRole("button", { name, exact: true }).click(),
    submitTwice: async (name) =>
      await dialog()
        .getByRole("button", { name, exact: true })
        .evaluate((button: { click(): void }) => {
          button.click()
          button.click()
        }),
    expectValue: async (label, value) => {
      await expect.poll(async () => await page.getByLabel(label).inputValue()).toBe(value)
    },
    settled,
    problems,
    overflow,
    expectSound: async () => {
      await settled()
      await expectSoundPage(page)
      expect(await page.evaluate("window.hacked")).toBeUndefined()
      expect(complaints).toEqual([])
    },
    close: async () => {
      await browser.close()
      await server.stop()
    },
  }
}

const overflowOf = async (page: Page): Promise<unknown> =>
  await page.evaluate("document.documentElement.scrollWidth - document.body.offsetWidth")

/** Accessible in the light and the dark, and no wider than a phone; of any page, as it stands. */
export async function expectSoundPage(page: Page): Promise<void> {
  await page.emulateMedia({ colorScheme: "light" })
  await expect.poll(async () => await seriousProblems(page, [])).toEqual([])
  await page.emulateMedia({ colorScheme: "dark" })
  await expect.poll(async () => await seriousProblems(page, ["color-contrast"])).toEqual([])
  await page.setViewportSize(phone)
  await expect.poll(async () => await overflowOf(page)).toBe(0)
  await page.setViewportSize(desktop)
}

async function seriousProblems(page: Page, rules: readonly string[]): Promise<string[]> {
  if ((await page.evaluate("typeof window.axe")) === "undefined") await page.evaluate(axe)
  const chosen = rules.length > 0 ? { runOnly: rules } : {}
  // The form of axe's own report.
  const found = (await page.evaluate(
    `axe.run(document, ${JSON.stringify({ resultTypes: ["violations"], ...chosen })})`,
  )) as {
    violations: { id: string; impact: string; nodes: { html: string }[] }[]
  }
  return found.violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 160)).join(" | ")}`)
}

/** Holds back the page's next write until it is released, and counts those that come. */
export async function holdWrites(page: Page): Promise<{
  release(): Promise<void>
  count(): number
}> {
  const held = Promise.withResolvers<void>()
  let writes = 0
  await page.route("**/v1/**", async (route) => {
    if (route.request().method() === "GET") return await route.continue()
    writes += 1
    await held.promise
    await route.continue()
  })
  return {
    count: () => writes,
    release: async () => {
      held.resolve()
      await page.unrouteAll({ behavior: "wait" })
    },
  }
}

/**
 * Watches for a text that a page shows for some seconds only, which a busy machine may look for too late. What it answers
 * resolves when the text has been seen in an element that the selector finds.
 */
export async function watchFor(page: Page, selector: string, text: string): Promise<() => Promise<void>> {
  await page.evaluate(`{
    window.wasShown = false
    const look = () => {
      for (const element of document.querySelectorAll(${JSON.stringify(selector)}))
        window.wasShown ||= element.textContent.includes(${JSON.stringify(text)})
    }
    new MutationObserver(look).observe(document.body, { subtree: true, childList: true, characterData: true })
  }`)
  return async () => await expect.poll(async () => await page.evaluate("window.wasShown")).toBe(true)
}
