/** Takes the pictures of docs/tour.md: what a first hour with the console looks like, as small WebP files. */
import { mkdirSync, rmSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import type { Page } from "playwright-core"
import { signIn } from "../test/console.ts"
import { withCompany } from "./furnished-server.ts"

const folder = join(import.meta.dirname, "..", "docs", "tour")
const desktop = { width: 1280, height: 800 }
const phone = { width: 390, height: 844 }
const quality = 70
const waitMs = 120_000

interface Tour {
  readonly page: Page
  /** Opens a page of the organization. */
  readonly open: (path: string) => Promise<void>
  readonly press: (name: string | RegExp) => Promise<void>
  readonly see: (text: string | RegExp) => Promise<void>
}

/** In the order of docs/tour.md; each goes on from where the one before ended. */
const pictures: readonly (readonly [name: string, show: (tour: Tour) => Promise<void>])[] = [
  [
    "playground",
    async ({ page, press }) => {
      await press("Decide")
      await page.getByRole("group", { name: "Answer to question 2" }).getByRole("button").click()
      await page.getByRole("meter").first().waitFor()
    },
  ],
  [
    "start-label",
    async ({ page, open, press }) => {
      await open("start")
      await press("Use sample rows")
      await page.getByRole("region", { name: "Text to label" }).scrollIntoViewIfNeeded()
    },
  ],
  [
    "start-taught",
    async ({ page, see, press }) => {
      for (const key of ["y", "n", "y", "n"]) await page.keyboard.press(key)
      await press("Teach from 44 labels")
      await see(/^Of 44 rows, each judged/)
      await see(/^\d+ answers? of 44 changed\./)
    },
  ],
  [
    "try",
    async ({ page, open, press }) => {
      await open("sets/ticket-triage?tab=try")
      await page
        .getByLabel("Text", { exact: true })
        .fill("The tent came a week late and a pole is bent. I would rather have my money back.")
      await press("Ask the set")
      await page.getByRole("listitem", { name: "Answer to topic" }).waitFor()
    },
  ],
  [
    "teach",
    async ({ page, open }) => {
      await open("sets/ticket-triage?tab=teach")
      await page
        .getByRole("region", { name: "topic" })
        .getByText("Accuracy by the number of labels")
        .waitFor()
      await page.getByRole("region", { name: "topic" }).scrollIntoViewIfNeeded()
    },
  ],
  [
    "threshold",
    async ({ page, open }) => {
      await open("sets/ticket-triage?tab=threshold")
      await page
        .getByRole("img", { name: /^Risk against coverage/ })
        .first()
        .waitFor()
    },
  ],
  [
    "review",
    async ({ page, open }) => {
      await open("review")
      await page.getByRole("article").first().waitFor()
    },
  ],
  [
    "evaluate",
    async ({ page, open, press, see }) => {
      await open("evaluate")
      await press("Use a sample")
      await press(/^Evaluate/)
      await see("Done: 8 of 8 rows")
      await page.getByRole("region", { name: "Results" }).scrollIntoViewIfNeeded()
    },
  ],
  [
    "monitoring",
    async ({ page, open }) => {
      await open("sets/ticket-triage?tab=monitoring")
      await page.getByRole("region", { name: "topic" }).waitFor()
    },
  ],
  [
    "request",
    async ({ page, open, press }) => {
      await open("requests")
      await page
        .getByRole("link", { name: /^\d+:\d+:\d+$/ })
        .first()
        .click()
      await press("Show content")
      await page.getByRole("list", { name: "Answers" }).waitFor()
    },
  ],
  [
    "analytics-dark",
    async ({ page, open }) => {
      await page.emulateMedia({ colorScheme: "dark" })
      await open("analytics")
      await page.getByText("Week", { exact: true }).click()
      await page.getByRole("list", { name: "Series" }).waitFor()
    },
  ],
  [
    "models",
    async ({ page, open }) => {
      await page.emulateMedia({ colorScheme: "light" })
      await open("models")
    },
  ],
  ["billing", async ({ open }) => await open("billing")],
  [
    "phone",
    async ({ page, open }) => {
      await page.setViewportSize(phone)
      await open("review")
      await page.getByRole("article").first().waitFor()
    },
  ],
]

rmSync(folder, { recursive: true, force: true })
mkdirSync(folder, { recursive: true })
await withCompany(async (page, url) => {
  page.setDefaultTimeout(waitMs)
  await page.setViewportSize(desktop)
  const orgId = await signIn(page, url)
  const tour: Tour = {
    page,
    open: async (path) => {
      await page.goto(`${url}/o/${orgId}/${path}`)
      await page.getByRole("heading", { level: 1 }).waitFor()
    },
    press: async (name) => await page.getByRole("button", { name }).first().click(),
    see: async (text) => await page.getByText(text).first().waitFor(),
  }
  const devtools = await page.context().newCDPSession(page)
  let bytes = 0
  for (const [name, show] of pictures) {
    await show(tour)
    await page.waitForLoadState("networkidle")
    const { data } = await devtools.send("Page.captureScreenshot", { format: "webp", quality })
    const file = join(folder, `${name}.webp`)
    writeFileSync(file, Buffer.from(data, "base64"))
    bytes += statSync(file).size
    console.log(`docs/tour/${name}.webp ${statSync(file).size}`)
  }
  console.log(`${bytes} bytes in all`)
})
