/** The console in a browser, from the first start to the first answer. */
import { afterAll, beforeAll, expect, test } from "vitest"
import { type Browser, openBrowser } from "./browser.ts"
import { type TestServer, startServer } from "./server.ts"

let server: TestServer
let browser: Browser

beforeAll(async () => {
  server = await startServer({ bootstrap: false })
  browser = await openBrowser()
})
afterAll(async () => {
  await browser.close()
  await server.stop()
})

test("the link that the first start prints leads to a first answer, and works once", async () => {
  const link = /^ {2}(http\S+#link=\S+)$/m.exec(server.stdout())?.[1] ?? ""
  expect(link).not.toBe("")
  const page = await browser.context.newPage()
  await page.goto(link)
  await page.getByRole("heading", { name: "Playground" }).waitFor()
  expect(page.url()).not.toContain("link=")
  await page.getByRole("button", { name: "Decide" }).click()
  const answer = page.getByRole("group", { name: "Answer to question 1" })
  await answer.waitFor()
  expect(await answer.getByText("Yes", { exact: true }).isVisible()).toBe(true)

  await page.goto("about:blank")
  await page.goto(link)
  await page.getByText("the link is unknown, used or expired").waitFor()
  expect(await page.getByLabel("Email").isVisible()).toBe(true)
})
