/** Writing in the console: what takes the focus, what is told while typing, and what cannot be lost by accident. */
import { describe, expect, test } from "vitest"
import type { Locator } from "playwright-core"
import type { Scene } from "./console-scene.ts"

export function writingTests(scene: Scene): void {
  const focused = (): Locator => scene.page.locator(":focus")
  const label = async (): Promise<string | null> => await focused().getAttribute("aria-label")
  const evidence = (): Locator => scene.page.getByLabel("Evidence text")
  const options = async (): Promise<string[]> =>
    await scene.page
      .getByRole("group", { name: "options of question 1" })
      .getByLabel(/^Option \d+$/)
      .evaluateAll((fields) => fields.map((field) => (field as unknown as { value: string }).value))

  describe("in the playground", () => {
    test("a new question takes the focus, and so does each option that Enter adds", async () => {
      await scene.open("playground")
      await scene.pick("Examples", "Support ticket")
      await scene.pick("Add question", "Pick one")
      expect(await label()).toBe("Text of question 4")
      const card = scene.page.getByRole("region", { name: "Question 4" })
      await card.getByLabel("Option 2", { exact: true }).fill("b")
      await scene.page.keyboard.press("Enter")
      expect(await label()).toBe("Option 3")
      await scene.page.keyboard.type("c")
      await card.getByRole("button", { name: "Add option" }).click()
      expect(await label()).toBe("Option 4")
      await scene.page.keyboard.press("Backspace")
      expect(await label()).toBe("Option 3")
      expect(await card.getByLabel(/^Option \d+$/).count()).toBe(3)
    })

    test("pasted lines become options, and those over the limit are told", async () => {
      await scene.open("playground")
      await scene.pick("Actions for question 1", "Remove")
      const field = scene.page
        .getByRole("region", { name: "Question 1" })
        .getByLabel("Option 3", { exact: true })
      const paste = async (text: string): Promise<void> => {
        await scene.page.evaluate(`navigator.clipboard.writeText(${JSON.stringify(text)})`)
        await field.focus()
        await scene.page.keyboard.press("Control+v")
      }
      await paste("- refunds\n- thanks\n")
      expect(await options()).toEqual(["delivery", "account", "praise", "refunds", "thanks"])
      await paste(Array.from({ length: 251 }, (_, index) => `option ${index}`).join("\n"))
      expect((await options()).length).toBe(255)
      await scene.page.getByText("255 options are the most; 1 more did not fit.").waitFor()
      expect(await scene.page.getByRole("button", { name: "Add option" }).first().isDisabled()).toBe(true)
      await scene.pick("Examples", "Support ticket")
    })

    test("tokens are told against the model's context, and too many before asking", async () => {
      await scene.open("playground")
      await evidence().fill("word ".repeat(200))
      const meter = scene.page.getByRole("meter", { name: "Context used" })
      const most = Number(await meter.getAttribute("aria-valuemax"))
      expect(Number(await meter.getAttribute("aria-valuenow"))).toBeGreaterThan(100)
      expect(await scene.page.getByText("will be refused").count()).toBe(0)
      await evidence().fill("word ".repeat(most * 2))
      await scene.page.getByText("more than umpire-").waitFor()
      await evidence().fill("a")
    })

    test("the evidence field shows that it has the focus", async () => {
      await scene.open("playground")
      await evidence().focus()
      const ring = await evidence().evaluate((field) => {
        const { outlineStyle, outlineWidth } = (
          globalThis as unknown as { getComputedStyle(of: unknown): Record<string, string> }
        ).getComputedStyle(field)
        return `${outlineStyle} ${outlineWidth}`
      })
      expect(ring).toBe("solid 2px")
      expect(await evidence().getAttribute("dir")).toBe("auto")
    })

    test("an example, a link, a file and a removal can be undone", async () => {
      await scene.open("playground")
      await evidence().fill("Mine alone.")
      await scene.pick("Examples", "Moderation")
      expect(await evidence().inputValue()).not.toBe("Mine alone.")
      await scene.click("Undo")
      await scene.expectValue("Evidence text", "Mine alone.")
      await scene.click("Share")
      await scene.page.getByRole("button", { name: "Link copied" }).waitFor()
      const shared = String(await scene.page.evaluate("navigator.clipboard.readText()"))
      await evidence().fill("Written since.")
      await scene.page.goto("about:blank")
      await scene.page.goto(shared)
      await scene.page.getByText("The link replaced your draft.").waitFor()
      await scene.expectValue("Evidence text", "Mine alone.")
      await scene.click("Undo")
      await scene.expectValue("Evidence text", "Written since.")
      const before = await scene.page.getByRole("region", { name: /^Question \d/ }).count()
      await scene.pick("Actions for question 1", "Remove")
      await scene.click("Undo")
      expect(await scene.page.getByRole("region", { name: /^Question \d/ }).count()).toBe(before)
      await scene.click("Clear")
      await scene.click("Undo")
      await scene.expectValue("Evidence text", "Written since.")
      await scene.click("Dismiss")
    })

    test("two tabs keep a draft each", async () => {
      await scene.open("playground")
      await evidence().fill("In the first tab.")
      const other = await scene.browser.context.newPage()
      await other.goto(scene.page.url())
      // A new tab begins where the last one was.
      await expect
        .poll(async () => await other.getByLabel("Evidence text").inputValue())
        .toBe("In the first tab.")
      await other.getByLabel("Evidence text").fill("In the second tab.")
      await scene.page.reload()
      await scene.expectValue("Evidence text", "In the first tab.")
      await other.reload()
      await expect
        .poll(async () => await other.getByLabel("Evidence text").inputValue())
        .toBe("In the second tab.")
      await other.close()
    })

    test("the answers of three questions fit a laptop's screen, and nothing moves when they come", async () => {
      await scene.page.setViewportSize({ width: 1280, height: 800 })
      await scene.open("playground")
      await scene.pick("Examples", "Support ticket")
      const places = async (): Promise<unknown[]> =>
        await Promise.all(
          ["Evidence", "Answers", "Question 1", "Question 3"].map(
            async (name) => await scene.page.getByRole("region", { name, exact: true }).boundingBox(),
          ),
        )
      const before = await places()
      await scene.click("Decide")
      await scene.page.getByRole("button", { name: "Expand all" }).waitFor()
      expect(await places()).toEqual(before)
      const last = await scene.page.getByRole("group", { name: "Answer to question 3" }).boundingBox()
      expect((last?.y ?? 1e9) + (last?.height ?? 0)).toBeLessThan(800)
      await scene.page.setViewportSize({ width: 1280, height: 860 })
    })

    test("a refusal for want of money leads to Billing, and one for haste says when to try again", async () => {
      await scene.open("playground")
      const refuse = async (status: number, code: string, headers: Record<string, string>): Promise<void> => {
        await scene.page.route("**/v1/decisions", async (route) => {
          await route.fulfill({ status, headers, json: { error: { code, message: "Cannot run this" } } })
        })
        await scene.click("Decide")
      }
      await refuse(429, "rate_limited", { "retry-after": "30" })
      await scene.page
        .getByRole("alert")
        .getByText(/Try again in \d+ seconds/)
        .waitFor()
      await scene.page.unroute("**/v1/decisions")
      await refuse(402, "insufficient_credits", {})
      await scene.page.getByRole("alert").getByRole("link", { name: "Open Billing" }).click()
      await scene.page.getByRole("heading", { name: "Billing", level: 1 }).waitFor()
      await scene.page.unroute("**/v1/decisions")
    })
  })

  test("Escape closes an untouched form, and asks before it closes a filled one", async () => {
    await scene.open("keys")
    await scene.page.getByRole("button", { name: "Create key" }).first().click()
    await scene.page.keyboard.press("Escape")
    await scene.dialog().waitFor({ state: "detached" })
    await scene.page.getByRole("button", { name: "Create key" }).first().click()
    await scene.dialog().getByLabel("Name").fill("half written")
    // Browsers would close it on the second Escape.
    for (const asks of [true, false, true]) {
      await scene.page.keyboard.press("Escape")
      expect(await scene.page.getByRole("alertdialog").count()).toBe(asks ? 1 : 0)
    }
    await scene.click("Keep editing")
    expect(await scene.dialog().getByLabel("Name").inputValue()).toBe("half written")
    await scene.click("Close")
    await scene.click("Discard")
    await scene.dialog().waitFor({ state: "detached" })
  })

  test("Escape does not close a secret that is shown once without asking", async () => {
    await scene.open("keys")
    await scene.page.getByRole("button", { name: "Create key" }).first().click()
    await scene.dialog().getByLabel("Name").fill("shown once")
    await scene.submit("Create key")
    await scene.page.getByLabel("API key", { exact: true }).waitFor()
    await scene.page.keyboard.press("Escape")
    await scene.page.getByRole("alertdialog").waitFor()
    await scene.click("Keep it open")
    expect(await scene.page.getByLabel("API key", { exact: true }).textContent()).toMatch(/^ump_/)
    await scene.click("I have copied it")
  })

  test("each page names itself in the title of the window", async () => {
    for (const [path, title] of [
      ["playground", "Playground"],
      ["chat", "Chat"],
      ["analytics", "Analytics"],
      ["keys", "API keys"],
    ] as const) {
      await scene.open(path)
      expect(await scene.page.title()).toBe(`${title} · Umpire`)
    }
  })

  test("an evaluation goes on while another page is looked at, and keeps its file and plan", async () => {
    await scene.open("evaluate")
    const { promise: released, resolve: release } = Promise.withResolvers<void>()
    let asked = 0
    await scene.page.route("**/v1/decisions", async (route) => {
      asked += 1
      await released
      await route.continue()
    })
    const rows = [
      "text,label",
      ...Array.from({ length: 6 }, (_, index) => `row ${index},${index % 2 ? "yes" : "no"}`),
    ]
    await scene.page
      .getByLabel("Labelled file")
      .setInputFiles({ name: "kept.csv", mimeType: "text/plain", buffer: Buffer.from(rows.join("\n")) })
    await scene.page.getByLabel("Question to ask of every row").fill("Is the number odd?")
    await scene.click("Evaluate 6 rows")
    const places = scene.page.getByRole("navigation", { name: "Pages" })
    await places.getByRole("link", { name: "Models", exact: true }).click()
    await scene.page.getByRole("heading", { name: "Models", level: 1 }).waitFor()
    expect(asked).toBeGreaterThan(0)
    release()
    await places.getByRole("link", { name: "Evaluate", exact: true }).click()
    await scene.page.getByText("kept.csv: 6 rows").waitFor()
    await scene.expectValue("Question to ask of every row", "Is the number odd?")
    await scene.page.getByText("Done: 6 of 6 rows").waitFor()
    await scene.page.unroute("**/v1/decisions")
  })
}
