/** Writing in the console: what takes the focus, what is told while typing, and what cannot be lost by accident. */
import { isDeepStrictEqual } from "node:util"
import { describe, expect, test } from "vitest"
import type { Locator } from "playwright-core"
import { type Scene, watchFor } from "./console-scene.ts"

export function writingTests(scene: Scene): void {
  const focused = (): Locator => scene.page.locator(":focus")
  const label = async (): Promise<string | null> => await focused().getAttribute("aria-label")
  const evidence = (): Locator => scene.page.getByLabel("Text to judge")
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
      await expect.poll(async () => await label()).toBe("Text of question 4")
      const card = scene.page.getByRole("region", { name: "Question 4" })
      await card.getByLabel("Option 2", { exact: true }).fill("b")
      await scene.page.keyboard.press("Enter")
      await expect.poll(async () => await label()).toBe("Option 3")
      await scene.page.keyboard.type("c")
      await card.getByRole("button", { name: "Add option" }).click()
      await expect.poll(async () => await label()).toBe("Option 4")
      await scene.page.keyboard.press("Backspace")
      await expect.poll(async () => await label()).toBe("Option 3")
      await expect.poll(async () => await card.getByLabel(/^Option \d+$/).count()).toBe(3)
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
      await expect
        .poll(async () => await options())
        .toEqual(["delivery", "account", "praise", "refunds", "thanks"])
      await paste(Array.from({ length: 251 }, (_, index) => `option ${index}`).join("\n"))
      await expect.poll(async () => (await options()).length).toBe(255)
      await scene.page.getByText("255 options are the most; 1 more did not fit.").waitFor()
      await expect
        .poll(async () => await scene.page.getByRole("button", { name: "Add option" }).first().isDisabled())
        .toBe(true)
      await scene.pick("Examples", "Support ticket")
    })

    test("tokens are told against the model's context, and too many before asking", async () => {
      await scene.open("playground")
      await evidence().fill("word ".repeat(200))
      const meter = scene.page.getByRole("meter", { name: "Context used" })
      await expect.poll(async () => Number(await meter.getAttribute("aria-valuenow"))).toBeGreaterThan(100)
      const most = Number(await meter.getAttribute("aria-valuemax"))
      await expect.poll(async () => await scene.page.getByText("will be refused").count()).toBe(0)
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
      await expect.poll(async () => await evidence().getAttribute("dir")).toBe("auto")
    })

    test("an example, a link, a file and a removal can be undone", async () => {
      await scene.open("playground")
      await evidence().fill("Mine alone.")
      await scene.pick("Examples", "Moderation")
      await expect.poll(async () => await evidence().inputValue()).not.toBe("Mine alone.")
      await scene.click("Undo")
      await scene.expectValue("Text to judge", "Mine alone.")
      const told = await watchFor(scene.page, "button", "Link copied")
      await scene.click("Share")
      await told()
      const shared = String(await scene.page.evaluate("navigator.clipboard.readText()"))
      await evidence().fill("Written since.")
      await scene.page.goto("about:blank")
      await scene.page.goto(shared)
      await scene.page.getByText("The link replaced your draft.").waitFor()
      await scene.expectValue("Text to judge", "Mine alone.")
      await scene.click("Undo")
      await scene.expectValue("Text to judge", "Written since.")
      const before = await scene.page.getByRole("region", { name: /^Question \d/ }).count()
      await scene.pick("Actions for question 1", "Remove")
      await scene.click("Undo")
      await expect
        .poll(async () => await scene.page.getByRole("region", { name: /^Question \d/ }).count())
        .toBe(before)
      await scene.click("Clear")
      await scene.click("Undo")
      await scene.expectValue("Text to judge", "Written since.")
      await scene.click("Dismiss")
    })

    test("two tabs keep a draft each", async () => {
      await scene.open("playground")
      await evidence().fill("In the first tab.")
      const other = await scene.browser.context.newPage()
      await other.goto(scene.page.url())
      // A new tab begins where the last one was.
      await expect
        .poll(async () => await other.getByLabel("Text to judge").inputValue())
        .toBe("In the first tab.")
      await other.getByLabel("Text to judge").fill("In the second tab.")
      await scene.page.reload()
      await scene.expectValue("Text to judge", "In the first tab.")
      await other.reload()
      await expect
        .poll(async () => await other.getByLabel("Text to judge").inputValue())
        .toBe("In the second tab.")
      await other.close()
    })

    test("the answers of three questions fit a laptop's screen, and nothing moves when they come", async () => {
      await scene.page.setViewportSize({ width: 1280, height: 800 })
      // Answers that were kept from an earlier request have places of their own.
      await scene.page.evaluate("sessionStorage.clear()")
      await scene.open("playground")
      await scene.pick("Examples", "Support ticket")
      const places = async (): Promise<unknown[]> =>
        await Promise.all(
          ["Text", "Answers", "Question 1", "Question 3"].map(
            async (name) => await scene.page.getByRole("region", { name, exact: true }).boundingBox(),
          ),
        )
      let before: unknown[] = []
      // What is still being loaded moves things before the request, not by it.
      await expect
        .poll(async () => {
          const earlier = before
          before = await places()
          return isDeepStrictEqual(before, earlier)
        })
        .toBe(true)
      await scene.click("Decide")
      await scene.page.getByRole("button", { name: "Decide" }).waitFor()
      await scene.page.getByRole("button", { name: "Expand all" }).waitFor()
      await expect.poll(async () => await places()).toEqual(before)
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
      await expect.poll(async () => await scene.page.getByRole("alertdialog").count()).toBe(asks ? 1 : 0)
    }
    await scene.click("Keep editing")
    await expect.poll(async () => await scene.dialog().getByLabel("Name").inputValue()).toBe("half written")
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
    await expect
      .poll(async () => await scene.page.getByLabel("API key", { exact: true }).textContent())
      .toMatch(/^ump_/)
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
      await expect.poll(async () => await scene.page.title()).toBe(`${title} · Umpire`)
    }
  })
}
