/** Every page of the console in a browser: what it shows, who can read it, and how one gets there. */
import type { Locator } from "playwright-core"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { consolePages } from "./console.ts"
import { desktop, phone, useScene } from "./console-scene.ts"
import { type Hostile, evil, makeHostile } from "./console-hostile.ts"

const scene = useScene()

describe("with a script in every name", () => {
  let hostile: Hostile

  beforeAll(async () => {
    hostile = await makeHostile(scene.server)
    const { entry, value } = hostile.draft
    await scene.page.evaluate(`localStorage.setItem(${JSON.stringify(entry)}, ${JSON.stringify(value)})`)
    await scene.page.goto(`${scene.server.url}/o/${hostile.orgId}/settings`)
  })
  afterAll(async () => void (await scene.page.evaluate("localStorage.clear()")))

  test.each(consolePages)(
    "%s shows it as text, has no serious accessibility problem, breaks no rule of its policy and fits a phone",
    async (path, heading) => {
      const places = scene.page.getByRole("navigation", { name: "Pages" })
      await places.getByRole("link", { name: heading, exact: true }).click()
      await scene.page.getByRole("heading", { name: heading, level: 1 }).waitFor()
      expect(new URL(scene.page.url()).pathname).toBe(`/o/${hostile.orgId}/${path}`)
      await scene.expectSound()
      const shown = hostile.shownOn(path)
      if (shown) await scene.page.getByText(shown).first().waitFor()
    },
  )

  test.each([
    ["the record of a request", (one: Hostile) => `/o/${one.orgId}/requests/${one.sequenceId}`, "Request"],
    ["analytics by client", (one: Hostile) => `/o/${one.orgId}/analytics?by=client_ua`, "Analytics"],
    ["a question set", (one: Hostile) => `/o/${one.orgId}/sets/hostile`, "hostile"],
    ["its examples", (one: Hostile) => `/o/${one.orgId}/sets/hostile?tab=examples`, "hostile"],
    ["the review of it", (one: Hostile) => `/o/${one.orgId}/sets/hostile?tab=review`, "hostile"],
    ["the use of it", (one: Hostile) => `/o/${one.orgId}/sets/hostile?tab=use`, "hostile"],
    ["a batch", (one: Hostile) => `/o/${one.orgId}/batches/${one.batchId}`, evil],
    ["the door", () => "/sign-in", "Sign in to Umpire"],
    ["an invitation", (one: Hostile) => `/join#token=${one.invitation}`, `Join ${evil}`],
    ["an address that leads nowhere", (one: Hostile) => `/o/${one.orgId}/<b>nowhere</b>`, null],
  ])("%s is sound too", async (_, address, heading) => {
    await scene.page.goto(scene.server.url + address(hostile))
    await (
      heading
        ? scene.page.getByRole("heading", { name: heading, level: 1 })
        : scene.page.getByText("Page not found")
    ).waitFor()
    await scene.expectSound()
  })
})

test("the whole menu fits a window of 1280 by 800", async () => {
  await scene.page.setViewportSize({ width: 1280, height: 800 })
  await scene.open("settings")
  const menu = scene.page.getByRole("navigation", { name: "Pages" })
  const hidden = menu.evaluate((element: { scrollHeight: number; clientHeight: number }) => {
    return element.scrollHeight - element.clientHeight
  })
  expect(await hidden).toBe(0)
  await scene.page.setViewportSize(desktop)
})

describe("on a phone", () => {
  beforeAll(async () => await scene.page.setViewportSize(phone))
  afterAll(async () => await scene.page.setViewportSize(desktop))

  test("every page is reached by its menu and fits the width", async () => {
    await scene.open("playground")
    for (const [path, heading] of consolePages) {
      await scene.click("Open the menu")
      const menu = scene.page.getByRole("dialog", { name: "Menu" })
      await menu.getByRole("link", { name: heading, exact: true }).click()
      await scene.page.getByRole("heading", { name: heading, level: 1 }).waitFor()
      await scene.settled()
      await expect.poll(async () => [path, await scene.overflow()]).toEqual([path, 0])
    }
  })
})

test("the reference shows every endpoint and tries one with the session", async () => {
  await scene.page.goto(`${scene.server.url}/docs`)
  const article = scene.page.getByRole("article", { name: "Read the session" })
  await article.getByRole("button").first().click()
  await article.getByRole("button", { name: "Try it" }).click()
  await article.getByRole("button", { name: "Send" }).click()
  await expect
    .poll(async () => await article.getByLabel("Answer body").textContent())
    .toContain("ada@example.com")
  await expect.poll(async () => await scene.problems()).toEqual([])
  expect(scene.complaints).toEqual([])
})

test.each([
  "Answer a list of typed questions",
  "Answer a map of named questions",
  "Create embeddings",
  "Read a model",
  "Read analytics of a time range",
])("trying \u201C%s\u201D as it is filled in works", async (name) => {
  await scene.page.goto(`${scene.server.url}/docs`)
  const article = scene.page.getByRole("article", { name, exact: true })
  await article.getByRole("button").first().click()
  await article.getByRole("button", { name: "Try it" }).click()
  await article.getByRole("button", { name: "Send" }).click()
  const answer = article.getByRole("status", { name: "Answer" })
  await answer.waitFor()
  await expect.poll(async () => await answer.textContent()).toMatch(/^200/)
})

test("the command palette goes anywhere by keyboard", async () => {
  await scene.open("settings")
  await scene.page.keyboard.press("Control+k")
  await scene.page.getByRole("dialog", { name: "Search" }).waitFor()
  await scene.page.keyboard.type("rotate")
  await scene.page.keyboard.press("Enter")
  await scene.page.getByRole("heading", { name: "API keys", level: 1 }).waitFor()
})

test("a question mark lists the shortcuts, except where one writes", async () => {
  await scene.open("settings")
  await scene.page.keyboard.press("?")
  const list = scene.page.getByRole("dialog", { name: "Keyboard shortcuts" })
  await list.getByRole("region", { name: "Review" }).getByText("Not sure").waitFor()
  await scene.expectSound()
  await scene.page.keyboard.press("Escape")
  await list.waitFor({ state: "detached" })
  await scene.page.keyboard.press("Control+k")
  await scene.page.keyboard.type("what?")
  await expect.poll(async () => await scene.dialog().getByRole("combobox").inputValue()).toBe("what?")
  await expect.poll(async () => await list.count()).toBe(0)
})

test("the command palette finds actions, keys, people and requests", async () => {
  const choose = async (text: string): Promise<void> => {
    await scene.page.keyboard.press("Control+k")
    const search = scene.page.getByRole("dialog", { name: "Search" })
    await search.getByRole("combobox").fill(text)
    await search.getByRole("option").first().waitFor()
    await scene.page.keyboard.press("Enter")
  }
  const marked = (): Locator => scene.page.locator("[aria-current=true]")
  await scene.open("settings")
  await choose("create key")
  await scene.page.getByRole("dialog", { name: "Create a key" }).waitFor()
  await scene.submit("Cancel")
  await choose("first key")
  await marked().getByText("first key", { exact: true }).waitFor()
  await choose("ada@example.com")
  await scene.page.getByRole("heading", { name: "Members", level: 1 }).waitFor()
  await marked().getByText("ada@example.com").waitFor()
  await choose("seq_unheard")
  await scene.page.getByText("No such request").waitFor()
  await scene.page.keyboard.press("Control+k")
  await scene.expectSound()
  await scene.dialog().getByRole("combobox").fill("qqqq")
  await scene.page.getByText("No results for “qqqq”.").waitFor()
})

test("on a phone one switches organizations and signs out from the menu", async () => {
  await scene.page.setViewportSize(phone)
  try {
    await scene.open("settings")
    await scene.click("Open the menu")
    const menu = scene.page.getByRole("dialog", { name: "Menu" })
    for (const [button, item] of [
      [/^Organization/, "Create organization"],
      [/account and appearance/, "Sign out"],
    ] as const) {
      await menu.getByRole("button", { name: button }).click()
      // A trial presses nothing, but fails where something lies above.
      await scene.page.getByRole("menuitem", { name: item }).click({ trial: true })
      await scene.page.keyboard.press("Escape")
    }
  } finally {
    await scene.page.setViewportSize(desktop)
  }
})

test("an address that leads nowhere is a page that says so", async () => {
  await scene.page.goto(`${scene.server.url}/o/${scene.orgId}/nowhere`)
  await scene.page.getByText("Page not found").waitFor()
  await scene.page.getByRole("link", { name: "API keys" }).waitFor()
  await scene.page.goto(`${scene.server.url}/o/${scene.orgId}/sets/nothing`)
  await scene.page.getByText("No such question set").waitFor()
  await scene.page.goto(`${scene.server.url}/o/org_nobody/keys`)
  await scene.page.getByText("This page cannot be shown").waitFor()
})
