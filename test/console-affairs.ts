/** Routing, identity, billing, the audit log and analytics in a browser: every write, and refusals in words. */
import { readFileSync } from "node:fs"
import type { Locator } from "playwright-core"
import { expect, test } from "vitest"
import type { Scene } from "./console-scene.ts"

export function affairsTests(scene: Scene): void {
  test("the routing policy is previewed before it is saved, and kept", async () => {
    await scene.open("routing")
    await scene.page.getByRole("list", { name: "Regions tried in order" }).getByText("paris").waitFor()
    await scene.page.getByLabel("Required").check()
    await scene.click("oregon (US)")
    await scene.page.getByText("This request would be refused").waitFor()
    await scene.click("paris (FR)")
    await scene.click("Move paris up")
    await scene.page.getByLabel("No fallback").check()
    await scene.click("Save policy")
    await scene.page.getByText("Saved. It applies from the next request on.").waitFor()
    await scene.page.reload()
    await expect.poll(async () => await scene.page.getByLabel("Required").isChecked()).toBe(true)
    await scene.click("Remove oregon")
    await scene.click("Remove paris")
    await scene.page.getByLabel("Nearest").check()
    await scene.page.getByLabel("Any region").check()
    await scene.click("Save policy")
    await scene.page.getByText("Saved. It applies").waitFor()
  })

  test("an identity provider is added with checked expressions, tested, paused and deleted", async () => {
    await scene.open("identity")
    await scene.click("Add provider")
    await scene.page.getByLabel("Name").fill("ci")
    await scene.page.getByLabel("Issuer").fill("https://issuer.example.com")
    await scene.page.getByLabel("Allowed audiences").fill("umpire")
    await scene.page.getByLabel("Attribute condition").fill("assertion.sub ==")
    await scene.page.getByText("Not CEL").waitFor()
    await scene.page.getByLabel("Attribute condition").fill('assertion.sub == "a"')
    await expect.poll(async () => await scene.page.getByText("Not CEL").count()).toBe(0)
    await scene.dialog().getByRole("button", { name: "Add rule" }).click()
    await scene.page.getByLabel("When (CEL), rule 1").fill('attribute.team == "x"')
    await scene.dialog().getByRole("button", { name: "Add attribute" }).click()
    await scene.page.getByLabel("Attribute", { exact: true }).fill("team")
    await scene.page.getByLabel("Expression (CEL)").fill("assertion.team")
    await expect.poll(async () => await scene.problems()).toEqual([])
    await scene.submit("Add provider")
    await scene.page.getByRole("article", { name: "ci" }).waitFor()

    await scene.pick("Actions for ci", "Test a token")
    await scene.page.getByLabel("Token (JWT)").fill("not.a.token")
    await scene.submit("Test")
    await scene.page.getByText("Refused.").waitFor()
    await scene.submit("Cancel")
    await scene.pick("Actions for ci", "Edit")
    await scene.page.getByLabel("Name").fill("pipelines")
    await scene.submit("Save")
    await scene.page.getByRole("article", { name: "pipelines" }).getByText("Revision 2").waitFor()
    await scene.pick("Actions for pipelines", "Pause")
    await scene.page.getByText("Paused").waitFor()
    await scene.pick("Actions for pipelines", "Delete")
    await scene.submit("Delete")
    await scene.page.getByText("No providers yet").waitFor()
  })

  test("a public issuer without a condition is refused until it is confirmed twice", async () => {
    const issuer = "https://token.actions.githubusercontent.com"
    await scene.open("identity")
    await scene.click("Add provider")
    await scene.page.getByLabel("Name").fill("everyone")
    await scene.page.getByLabel("Issuer", { exact: true }).fill(issuer)
    await scene.page.getByLabel("Allowed audiences").fill("umpire")
    await scene.dialog().getByLabel("inference").last().check()
    await scene.submit("Add provider")
    await scene.dialog().getByLabel("Anyone with a token of this issuer may exchange it").check()
    await scene.dialog().getByLabel("Type the issuer again to confirm").fill(issuer)
    await scene.submit("Add provider")
    await scene.page.getByRole("article", { name: "everyone" }).waitFor()
    await scene.pick("Actions for everyone", "Delete")
    await scene.submit("Delete")
    await scene.page.getByText("No providers yet").waitFor()
  })

  test("credit is bought, refused amounts are explained, and limits are kept", async () => {
    await scene.open("billing")
    const balance = scene.page.getByLabel("Credit balance")
    const before = await balance.textContent()
    await scene.page.getByText("a test card: no money moves").waitFor()
    await scene.click("Add credit")
    await scene.page.getByLabel("Amount in dollars").fill("5")
    await scene.page.getByText("Between $10.00 and $500.00.").waitFor()
    await scene.page.getByLabel("Amount in dollars").fill("20")
    await scene.submit("Pay $20.00")
    await scene.page.getByText("$20.00 of credit added.").waitFor()
    await scene.submit("Done")
    await expect.poll(async () => await balance.textContent()).not.toBe(before)
    await scene.click("Add credit")
    await scene.page.getByLabel("Amount in dollars").fill("10.02")
    await scene.submit("Pay $10.02")
    await scene.dialog().getByRole("alert").waitFor()
    await scene.submit("Done")

    await scene.click("Remove payment method")
    await scene.page.getByText("None", { exact: true }).waitFor()
    await scene.click("Add payment method")
    await scene.page.getByRole("button", { name: "Remove payment method" }).waitFor()

    const refill = scene.page.getByRole("form", { name: "Automatic refill" })
    await refill.getByLabel("Refill to ($)").fill("75")
    await refill.getByRole("button", { name: "Save" }).click()
    await expect.poll(async () => await refill.getByLabel("Refill to ($)").inputValue()).toBe("75.00")
    const controls = scene.page.getByRole("form", { name: "Spend controls" })
    await controls.getByLabel("Warn at a monthly spend of ($)").fill("50")
    await controls.getByLabel("Stop at a monthly spend of ($)").fill("40")
    await controls.getByRole("button", { name: "Save" }).click()
    await controls.getByRole("alert").getByText("lower than the cutoff").waitFor()
    await controls.getByLabel("Stop at a monthly spend of ($)").fill("60")
    await controls.getByRole("button", { name: "Save" }).click()
    await expect
      .poll(async () => await controls.getByLabel("Stop at a monthly spend of ($)").inputValue())
      .toBe("60.00")
  })

  test("a tag gets a budget and limits on the Billing page, which are shown, changed and removed", async () => {
    await scene.open("billing")
    await scene.click("Add limit")
    await scene.dialog().getByLabel("Tag").fill("team")
    await scene.dialog().getByLabel("Value").fill("night shift")
    await scene.dialog().getByLabel("Most USD a month").fill("20")
    await scene.dialog().getByLabel("Warn at USD a month").fill("30")
    await scene.submit("Save")
    await scene.dialog().getByRole("alert").getByText("lower than the cutoff").waitFor()
    await scene.dialog().getByLabel("Warn at USD a month").fill("15")
    await expect.poll(async () => await scene.problems()).toEqual([])
    await scene.submit("Save")
    const tags = scene.page.getByRole("list", { name: "Budgets and limits of tags" })
    await tags.getByText("team=night shift").waitFor()
    await tags.getByText("$0.00 of $20.00 this month").waitFor()
    await scene.click("Edit team=night shift")
    await scene.expectValue("Most USD a month", "20")
    await scene.dialog().getByLabel("Most USD a month").fill("25")
    await scene.dialog().getByLabel("Requests a minute").fill("1200")
    await scene.dialog().getByLabel("Tokens a minute").fill("5000")
    await scene.submit("Save")
    await tags.getByText("$0.00 of $25.00 this month").waitFor()
    await tags.getByText("1,200 requests a minute, 1,200 at once").waitFor()
    await tags.getByText("5,000 tokens a minute").waitFor()
    await scene.click("Remove team=night shift")
    await scene.submit("Remove")
    await tags.getByText("team=night shift").waitFor({ state: "detached" })
  })

  test("a double click on Pay pays once, and so does a second attempt after a lost answer", async () => {
    await scene.open("billing")
    const purchases = scene.page.getByRole("table", { name: "Credit purchases" })
    const amounts = (): Locator => purchases.getByText("$31.00", { exact: true })
    await scene.click("Add credit")
    await scene.page.getByLabel("Amount in dollars").fill("31")
    await scene.submitTwice("Pay $31.00")
    await scene.page.getByText("$31.00 of credit added.").waitFor()
    await scene.submit("Done")
    await expect.poll(async () => await amounts().count()).toBe(1)

    await scene.click("Add credit")
    await scene.page.getByLabel("Amount in dollars").fill("31")
    await scene.page.route("**/refill", async (route) => {
      await route.fetch({ timeout: 0 })
      await route.abort()
    })
    await scene.submit("Pay $31.00")
    await scene.dialog().getByText("Umpire is not answering").waitFor()
    await scene.page.unroute("**/refill")
    await scene.submit("Pay $31.00")
    await scene.page.getByText("$31.00 of credit added.").waitFor()
    await scene.submit("Done")
    await scene.page.reload()
    await purchases.waitFor()
    await expect.poll(async () => await amounts().count()).toBe(2)
  })

  test("low credit is a banner on every page that leads to Billing", async () => {
    await scene.open("billing")
    const controls = scene.page.getByRole("form", { name: "Spend controls" })
    const save = async (dollars: string): Promise<void> => {
      await controls.getByLabel("Warn below a balance of ($)").fill(dollars)
      await controls.getByRole("button", { name: "Save" }).click()
      await controls.getByText("Saved.").waitFor()
    }
    await save("100000")
    await scene.open("members")
    const banner = scene.page.getByRole("status", { name: "Billing" })
    await banner.getByText("Credit is low").waitFor()
    await expect.poll(async () => await scene.problems()).toEqual([])
    await banner.getByRole("link", { name: "Open Billing" }).click()
    await scene.page.getByRole("heading", { name: "Billing", level: 1 }).waitFor()
    await save("")
    await scene.open("members")
    await scene.settled()
    await expect.poll(async () => await banner.count()).toBe(0)
  })

  test("a refusal for want of credit leads to Billing; too many requests says when to try again", async () => {
    const refuse = async (code: string, http: number, headers: Record<string, string>): Promise<void> => {
      await scene.page.route("**/v1/decisions", async (route) => {
        const error = { code, message: "Cannot run the request: see the code" }
        await route.fulfill({ status: http, headers, json: { error } })
      })
      await scene.click("Decide")
    }
    await scene.open("playground")
    await scene.pick("Examples", "Support ticket")
    await refuse("insufficient_credits", 402, {})
    const refused = scene.page.getByRole("alert")
    await expect
      .poll(async () => await refused.getByRole("link", { name: "Open Billing" }).getAttribute("href"))
      .toContain("/billing")
    await scene.page.unrouteAll()
    await refuse("rate_limited", 429, { "retry-after": "2" })
    await refused.getByText("Too many requests. You can try again now.").waitFor()
    await scene.page.unrouteAll()
  })

  test("the audit log names who changed what, filters by names and dates, and exports what is shown", async () => {
    await scene.open("audit")
    const filters = scene.page.getByRole("search", { name: "Audit log filters" })
    await filters.getByLabel("Who").selectOption("ada@example.com")
    await filters.getByLabel("Action").selectOption("Organization updated")
    await expect.poll(() => scene.page.url()).toContain("organization.update")
    const list = scene.page.getByRole("list", { name: "Audit log" })
    const entry = list.getByRole("listitem").first()
    await entry.getByText("Organization updated").click()
    const changed = entry.getByRole("table", { name: "What changed" })
    await expect.poll(async () => await changed.locator("del").first().textContent()).toBe("Umpires & Co")
    await expect.poll(async () => await changed.locator("ins").first().textContent()).toBe("Personal")
    await expect.poll(async () => await entry.textContent()).toContain("ada@example.com")
    await expect.poll(async () => await scene.problems()).toEqual([])

    const download = scene.page.waitForEvent("download")
    await scene.page.getByRole("link", { name: "Export CSV" }).click()
    const csv = readFileSync((await (await download).path()) ?? "", "utf8")
    expect(csv).toContain("organization.update")
    expect(csv).not.toContain("session.create")

    await filters.getByLabel("To").fill("2020-01-01")
    await scene.page.getByText("No entry matches these filters.").waitFor()
    await scene.click("Clear filters")
    await list.getByText("Signed in").first().waitFor()
  })

  test("a bar of the spend leads to the requests of its day", async () => {
    await scene.open("billing")
    const bars = scene.page.getByRole("group", { name: /^Spend by day/ })
    await bars.getByRole("link").last().focus()
    await scene.page.keyboard.press("ArrowLeft")
    await scene.page.keyboard.press("Enter")
    await scene.page.getByRole("heading", { name: "Analytics", level: 1 }).waitFor()
    const { searchParams } = new URL(scene.page.url())
    expect(Number(searchParams.get("end")) - Number(searchParams.get("start"))).toBe(86_400_000)
  })

  test("analytics splits, filters and finds what happened", async () => {
    const questions = [{ type: "predicate", instructions: "Is it late?" }]
    for (const model of ["umpire-decide", "unheard-of"])
      await scene.server.post("/v1/decisions", { model, input: "x", questions })
    await scene.open("analytics")
    await expect
      .poll(async () => await scene.page.getByRole("button", { name: /^Requests/ }).textContent(), {
        timeout: 600_000,
      })
      .toMatch(/[1-9]/)
    await scene.page.getByLabel("Split by").selectOption("Result")
    await scene.page
      .getByRole("region", { name: "By result" })
      .getByRole("link", { name: "success", exact: true })
      .click()
    await scene.page.getByRole("list", { name: "Filters" }).getByText("Result is success").waitFor()
    expect(scene.page.url()).toContain("result%3Asuccess")
    await scene.click("Remove the filter Result is success")
    // What the chart names leads there too, and a failed request to its error.
    await scene.page.getByRole("list", { name: "Series" }).getByRole("link", { name: "success" }).click()
    await scene.page.getByRole("list", { name: "Filters" }).getByText("Result is success").waitFor()
    await scene.click("Remove the filter Result is success")
    await scene.page
      .getByRole("region", { name: "Results" })
      .getByRole("link", { name: "error", exact: true })
      .click()
    await scene.page.getByRole("region", { name: "By error" }).getByRole("link").first().waitFor()
    // Beside the count stand the latest failed requests, and each leads to its record.
    await scene.page.getByRole("list", { name: "Failed requests" }).getByRole("link").first().click()
    await scene.page.getByRole("heading", { name: "Request", level: 1 }).waitFor()
  })

  test("the count of errors leads to the failed requests, and each of them to its record", async () => {
    const { server, page } = scene
    const body = { model: "unheard-of", input: "x", questions: [{ type: "predicate", instructions: "y" }] }
    await server.post("/v1/decisions", body)
    const failed = await server.post("/v1/decisions", body, { "x-umpire-tags": "team=ops" })
    const id = failed.headers.get("x-umpire-sequence") ?? ""
    await scene.open("analytics")
    await page
      .getByRole("group", { name: "Summary" })
      .getByRole("link", { name: /^\d+ errors?$/ })
      .click()
    await page.getByRole("heading", { name: "Requests", level: 1 }).waitFor()
    await page.getByRole("list", { name: "Filters" }).getByText("Result is error").waitFor()
    const rows = page.getByRole("table", { name: "Requests" }).getByRole("row")
    await page.locator(`a[href$="${id}"]`).waitFor()
    await expect.poll(async () => await scene.problems()).toEqual([])
    // By keyboard: the first row, its record, the next one, and back to the row in the list.
    await page.keyboard.press("j")
    await page.keyboard.press("Enter")
    await page.getByRole("alert").getByText("unknown_model").waitFor()
    expect(new URL(page.url()).pathname).toMatch(new RegExp(`/requests/${id}$`))
    await expect
      .poll(
        async () =>
          await page.getByRole("region", { name: "Caller" }).getByRole("link").first().textContent(),
      )
      .toBe("first key")
    await page.getByRole("list", { name: "Tags" }).getByText("ops").waitFor()
    await expect.poll(async () => await scene.problems()).toEqual([])
    await page.keyboard.press("j")
    await expect.poll(() => page.url()).not.toContain(id)
    await page.keyboard.press("Escape")
    await page.getByRole("heading", { name: "Requests", level: 1 }).waitFor()
    await expect.poll(async () => await rows.nth(2).getAttribute("aria-current")).toBe("true")
  })

  test("requests are filtered, and a view of them is saved and found again", async () => {
    const { page } = scene
    await scene.open("requests")
    await scene.click("Filter")
    const form = scene.dialog()
    await form.getByLabel("Error", { exact: true }).fill("unknown_model")
    await form.getByLabel("Latency to, ms").fill("much")
    await form.getByRole("alert").getByText("a whole number is needed").waitFor()
    await form.getByLabel("Latency to, ms").fill("60000")
    await form.getByLabel("Tags").fill("team=ops")
    await expect.poll(async () => await scene.problems()).toEqual([])
    await scene.submit("Apply")
    const filters = page.getByRole("list", { name: "Filters" })
    await filters.getByText("Latency at most 60000 ms").waitFor()
    expect(new URL(page.url()).searchParams.get("error_code")).toBe("unknown_model")
    await scene.pick("Views", "Save this view")
    await scene.dialog().getByLabel("Name").fill("ops are lost")
    await scene.submit("Save view")
    await scene.click("Clear all")
    await filters.waitFor({ state: "detached" })
    await page.reload()
    await scene.pick("All requests", "ops are lost")
    await filters.getByText("Tag team=ops").waitFor()
    await scene.pick("ops are lost", "Delete “ops are lost”")
    await page.getByRole("button", { name: "Views" }).waitFor()
  })

  test("a request that comes while the list is live appears by itself, and not while a row is chosen", async () => {
    const { server, page } = scene
    const ask = async (): Promise<string> => {
      const body = { model: "unheard-of", input: "x", questions: [{ type: "predicate", instructions: "y" }] }
      return (await server.post("/v1/decisions", body)).headers.get("x-umpire-sequence") ?? ""
    }
    const row = (id: string): Locator => page.locator(`a[href$="${id}"]`)
    await scene.open("requests")
    await page.getByRole("table", { name: "Requests" }).waitFor()
    await row(await ask()).waitFor()
    await page.keyboard.press("j")
    const later = await ask()
    await page.getByRole("button", { name: "1 new request" }).waitFor()
    await expect.poll(async () => await row(later).count()).toBe(0)
    await scene.click("1 new request")
    await row(later).waitFor()
  })
}
