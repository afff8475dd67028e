/** Takes a picture of every page of the console, light and dark, on a desktop and on a phone, into test/out/screenshots. */
import { mkdirSync } from "node:fs"
import { join } from "node:path"
import type { Page } from "playwright-core"
import { consolePages, signIn } from "../test/console.ts"
import { setTabs } from "../console/src/sets/set-tabs.ts"
import { withCompany } from "./furnished-server.ts"

const folder = join(import.meta.dirname, "..", "test", "out", "screenshots")
/** Names of scenes; none means all. */
const only = process.argv.slice(2)
const sizes = { desktop: { width: 1440, height: 900 }, phone: { width: 390, height: 844 } } as const
const answerMs = 60_000

/** Scenes without a dialog. */
const longer = new Set(["new-batch", "compare", "record", "content", "audit-entry", "errors", "deliveries"])

type Size = keyof typeof sizes
type Act = (page: Page, size: Size) => Promise<void>

const press = async (page: Page, name: string | RegExp): Promise<void> =>
  await page.getByRole("button", { name }).first().click()

const decide = async (page: Page): Promise<void> => {
  await press(page, "Decide")
  await page.getByRole("button", { name: "Expand all" }).waitFor()
}

/** Brings a page to where there is something to see. */
const prepare: Partial<Record<string, Act>> = {
  playground: async (page) => {
    await decide(page)
    await press(page, /topic/)
  },
  evaluate: async (page) => {
    await press(page, "Use a sample")
    await press(page, /^Evaluate/)
    await page.getByText("Done: 8 of 8 rows").waitFor()
  },
  chat: async (page) => {
    await page.getByText("Instructions and settings").click()
    await page.getByLabel("Most tokens").fill("24")
    await page.getByText("Instructions and settings").click()
    await page.getByLabel("Message").fill("Write one sentence about the sea.")
    await press(page, "Send")
    await page.getByText(/tokens in/).waitFor({ timeout: answerMs })
  },
  analytics: async (page) => {
    await page.getByText("Week", { exact: true }).click()
    await page.getByRole("list", { name: "Series" }).waitFor()
  },
}

/** What is not a page of its own: the page it is on, and how to get there. */
const scenes: readonly (readonly [name: string, path: string, act: Act])[] = [
  ["code", "playground", async (page) => await press(page, "Code")],
  [
    "new-batch",
    "batches",
    async (page) => {
      await press(page, "New batch")
      const buffer = Buffer.from("id,message\n1,I want my money back.\n2,Thank you!")
      await page
        .getByLabel("Table", { exact: true })
        .setInputFiles({ name: "tickets.csv", mimeType: "text/csv", buffer })
      await page.getByText("The playground’s questions").click()
      await page.getByRole("region", { name: "Price" }).waitFor()
    },
  ],
  [
    "compare",
    "playground",
    async (page) => {
      await press(page, "Compare")
      await decide(page)
      await press(page, "Expand all")
      await press(page, "Stop comparing")
    },
  ],
  ["history", "playground", async (page) => await press(page, "History")],
  ["jump", "settings", async (page) => await page.keyboard.press("Control+k")],
  [
    "menu",
    "settings",
    async (page, size) => await press(page, size === "phone" ? "Open the menu" : /account and appearance/),
  ],
  ["key-form", "keys", async (page) => await press(page, "Create key")],
  ["provider-form", "identity", async (page) => await press(page, "Add provider")],
  [
    "record",
    "requests",
    async (page) => {
      await page.getByLabel("Sequence id or request id").fill("seq_past000001")
      await page.keyboard.press("Enter")
      await page.getByText("First byte").waitFor()
    },
  ],
  [
    "content",
    "requests",
    async (page) => {
      await page
        .getByRole("link", { name: /^\d+:\d+:\d+$/ })
        .first()
        .click()
      await press(page, "Show content")
      await page.getByRole("list", { name: "Answers" }).waitFor()
    },
  ],
  ["filter", "requests", async (page) => await press(page, "Filter")],
  ["rule-form", "alerts", async (page) => await press(page, "Create rule")],
  [
    "deliveries",
    "alerts",
    async (page) => {
      await press(page, /^Deliveries/)
      await page.getByRole("table", { name: "Deliveries" }).waitFor()
    },
  ],
  [
    "key-content",
    "keys",
    async (page) => {
      await press(page, /^Actions for ticket triage/)
      await page.getByRole("menuitem", { name: "Kept content" }).click()
    },
  ],
  [
    "errors",
    "analytics",
    async (page) => {
      await page.getByText("Month", { exact: true }).click()
      await page
        .getByRole("region", { name: "Results" })
        .getByRole("link", { name: "error", exact: true })
        .click()
      await page.getByRole("list", { name: "Failed requests" }).waitFor()
    },
  ],
  [
    "organizations",
    "settings",
    async (page, size) => {
      if (size === "phone") await press(page, "Open the menu")
      await page
        .getByRole("button", { name: /^Organization/ })
        .locator("visible=true")
        .click()
    },
  ],
  ["invite", "members", async (page) => await press(page, "Invite")],
  [
    "secret",
    "keys",
    async (page) => {
      await press(page, "Create key")
      await page.getByLabel("Name").fill("a key to look at")
      await page.getByRole("dialog").getByRole("button", { name: "Create key" }).click()
      await page
        .getByRole("dialog", { name: /created|key/i })
        .getByText(/ump_/)
        .waitFor()
    },
  ],
  ["credit", "billing", async (page) => await press(page, "Add credit")],
  [
    "audit-entry",
    "audit",
    async (page) => await page.getByRole("list", { name: "Audit log" }).locator("summary").first().click(),
  ],
]

const covering = new Set([...scenes.map(([name]) => name), "docs"].filter((name) => !longer.has(name)))

const setName = "ticket-triage"
mkdirSync(folder, { recursive: true })
await withCompany(takeAll)

async function takeAll(page: Page, url: string): Promise<void> {
  await everySize(page, "sign-in", async () => void (await page.goto(`${url}/sign-in`)))
  const orgId = await signIn(page, url)
  const open = async (path: string): Promise<void> => {
    const heading = consolePages.find(([one]) => one === path)?.[1] ?? ""
    await page.goto(`${url}/o/${orgId}/${path}`)
    await page.getByRole("heading", { name: heading, level: 1 }).waitFor()
  }
  for (const [path] of consolePages)
    await everySize(page, path, async (size) => {
      await open(path)
      await prepare[path]?.(page, size)
    })
  for (const [tab] of setTabs)
    await everySize(page, `set-${tab}`, async () => {
      await page.goto(`${url}/o/${orgId}/sets/${setName}?tab=${tab}`)
      await page.getByRole("heading", { name: setName, level: 1 }).waitFor()
    })
  for (const [name, path, act] of scenes)
    await everySize(page, name, async (size) => {
      await open(path)
      await act(page, size)
    })
  await everySize(page, "docs", async () => {
    // The same address again would not load the page again.
    await page.goto("about:blank")
    await page.goto(`${url}/docs#createDecision`)
    await press(page, "Try it")
  })
}

async function everySize(page: Page, name: string, open: (size: Size) => Promise<void>): Promise<void> {
  if (only.length > 0 && !only.includes(name)) return
  for (const [size, viewport] of Object.entries(sizes)) {
    await page.setViewportSize(viewport)
    // The keys of `sizes` are its sizes.
    await open(size as Size)
    await page.waitForLoadState("networkidle")
    for (const theme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme: theme })
      // A picture taken before the next frame would still show some things in the colors of before.
      await page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
      await page.screenshot({
        path: join(folder, `${name}-${size}-${theme}.png`),
        // A dialog covers the window, and the reference is longer than anyone looks at.
        fullPage: !covering.has(name),
        animations: "disabled",
      })
      console.log(`${name}-${size}-${theme}.png`)
    }
  }
}
