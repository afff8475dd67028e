/** How long the console's first pages take to be usable in a fresh browser, and how many bytes they need. */
import type { Page } from "playwright-core"
import { openBrowser } from "../test/browser.ts"
import { owner, startConsoleServer } from "../test/console.ts"

const rounds = 5
const bundleBytesMax = 350 * 1000
const server = await startConsoleServer()
const times: Record<"sign-in" | "playground", number[]> = { "sign-in": [], playground: [] }
/** By address: what is in the browser's cache is not sent twice. */
const sent = new Map<string, number>()
for (let round = 0; round < rounds; round++) {
  const browser = await openBrowser()
  const page = browser.context.pages()[0] ?? (await browser.context.newPage())
  page.on("response", (response) => {
    const { pathname } = new URL(response.url())
    const ours = pathname.startsWith("/assets/") || pathname.endsWith(".js") || pathname === "/"
    if (ours) sent.set(pathname, Number(response.headers()["content-length"] ?? 0))
  })
  times["sign-in"].push(await timed(page, async () => await page.getByLabel("Email").waitFor()))
  await page.getByLabel("Email").fill(owner.email)
  await page.getByLabel("Password").fill(owner.password)
  await page.getByRole("button", { name: "Sign in" }).click()
  const decide = page.getByRole("button", { name: "Decide" })
  await decide.waitFor()
  times.playground.push(await timed(page, async () => await decide.and(page.locator(":enabled")).waitFor()))
  await browser.close()
}
await server.stop()

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0
for (const [name, values] of Object.entries(times))
  console.log(
    `${name.padEnd(12)} usable after ${median(values).toFixed(0)} ms (median of ${rounds}; ${values.map((value) => value.toFixed(0)).join(", ")})`,
  )
const bytes = [...sent.values()].reduce((sum, size) => sum + size, 0)
console.log(`sent zipped for both: ${(bytes / 1000).toFixed(0)} kB (budget ${bundleBytesMax / 1000} kB)`)

async function timed(page: Page, usable: () => Promise<void>): Promise<number> {
  const startedMs = performance.now()
  await page.goto(server.url)
  await usable()
  return performance.now() - startedMs
}
