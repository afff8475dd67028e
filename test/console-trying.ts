/** The playground, chat and evaluation in a browser. */
import { readFileSync } from "node:fs"
import type { Locator } from "playwright-core"
import { describe, expect, test } from "vitest"
import { type Scene, holdWrites } from "./console-scene.ts"

export function tryingTests(scene: Scene): void {
  const answer = (number: number): Locator =>
    scene.page.getByRole("group", { name: `Answer to question ${number}` })
  /** Resolves when the answers have come. */
  const answered = async (): Promise<void> =>
    await scene.page.getByRole("button", { name: /^(?:Expand|Collapse) all$/ }).waitFor()
  const upload = async (name: string, text: string): Promise<void> =>
    await scene.page
      .getByLabel("Labelled file")
      .setInputFiles({ name, mimeType: "text/plain", buffer: Buffer.from(text) })

  describe("the playground", () => {
    test("asks every kind of question by keyboard and shows probabilities, tokens, latency and cost", async () => {
      await scene.open("playground")
      await scene.pick("Examples", "Support ticket")
      await scene.page.keyboard.press("Control+Enter")
      await answered()
      // One line each, and every probability on demand.
      expect(await scene.page.getByRole("meter", { name: /^Probability/ }).count()).toBe(0)
      await answer(2).getByRole("button").click()
      expect(await answer(2).getByRole("meter").count()).toBe(3)
      expect(await answer(2).textContent()).toMatch(/Confidence [\d.<>]+%: how far the winner is above/)
      await scene.click("Expand all")
      expect(await answer(3).textContent()).toMatch(/Confidence [\d.<>]+%: how closely the levels gather/)
      await scene.click("Collapse all")
      const result = scene.page.getByRole("status", { name: "Result" })
      expect(await result.textContent()).toMatch(/Tokens\d+.*Latency.*(?:ms|s).*Cost\$0\.0\d+umpire-decide/)
    })

    test("questions and options are added, ordered and removed", async () => {
      await scene.open("playground")
      await scene.pick("Add question", "Score on levels")
      await scene.page.getByLabel("Text of question 4").fill("How polite is it?")
      const card = scene.page.getByRole("region", { name: "Question 4" })
      await card.getByRole("button", { name: "Add level" }).click()
      await card.getByLabel("Level 4", { exact: true }).fill("extreme")
      await card.getByLabel("Level 4", { exact: true }).press("Alt+ArrowUp")
      expect(await card.getByLabel("Level 3", { exact: true }).inputValue()).toBe("extreme")
      await card.getByLabel("Move level 3", { exact: true }).press("ArrowUp")
      expect(await card.getByLabel("Level 2", { exact: true }).inputValue()).toBe("extreme")
      await scene.pick("Actions for question 4", "Move up")
      expect(await scene.page.getByLabel("Text of question 3").inputValue()).toBe("How polite is it?")
      // Both ends must be in view: a page that scrolls under a drag drops it elsewhere.
      await scene.page.getByRole("heading", { name: "Playground" }).scrollIntoViewIfNeeded()
      await scene.page
        .getByLabel("Move question 2", { exact: true })
        .dragTo(scene.page.getByLabel("Text of question 1"))
      const refund = "Does the customer ask for a refund?"
      expect(await scene.page.getByLabel("Text of question 2").inputValue()).toBe(refund)
      // By keyboard the handle keeps the focus, so that the next press goes on.
      await scene.page.getByLabel("Move question 2", { exact: true }).focus()
      await scene.page.keyboard.press("ArrowDown")
      await scene.page.keyboard.press("ArrowUp")
      await scene.page.keyboard.press("ArrowUp")
      expect(await scene.page.getByLabel("Text of question 1").inputValue()).toBe(refund)
      expect(await scene.page.getByText("Moved to place 1 of 4.").count()).toBe(1)
      await scene.pick("Actions for question 3", "Remove")
      expect(await scene.page.getByRole("region", { name: /^Question \d/ }).count()).toBe(3)
    })

    test("System One, and a second model beside the first, answer the same questions", async () => {
      await scene.open("playground")
      await scene.pick("Examples", "Support ticket")
      await scene.page.getByLabel("System One").check()
      await scene.click("Compare")
      await scene.page.getByLabel("Second model").selectOption("umpire-chat")
      await scene.click("Decide")
      await scene.click("Expand all")
      expect(await answer(1).getByRole("meter").count()).toBe(4)
      await scene.click("Stop comparing")
      await scene.page.getByLabel("Decisions").check()
    })

    test("code, link and history bring the same request elsewhere and back", async () => {
      await scene.open("playground")
      await scene.page.getByLabel("Evidence text").fill("A very particular piece of evidence.")
      await scene.click(/^Code$/)
      await scene.page.getByLabel("Python").check()
      expect(await scene.page.getByLabel("Code", { exact: true }).textContent()).toContain(
        "A very particular piece",
      )
      await scene.click("Close")
      await scene.click("Share")
      await scene.page.getByRole("button", { name: "Link copied" }).waitFor()
      const shared = String(await scene.page.evaluate("navigator.clipboard.readText()"))
      await scene.click("Decide")
      await answered()
      await scene.page.getByLabel("Evidence text").fill("Something else.")
      await scene.page.goto("about:blank")
      await scene.page.goto(shared)
      await scene.expectValue("Evidence text", "A very particular piece of evidence.")
      await scene.page.getByLabel("Evidence text").fill("Something else.")
      await scene.click("History")
      await scene.dialog().getByText("A very particular piece").first().click()
      await scene.expectValue("Evidence text", "A very particular piece of evidence.")
    })

    test("a file becomes evidence, and one that is not text is refused in words", async () => {
      await scene.open("playground")
      const picker = scene.page.getByLabel("Evidence file")
      await picker.setInputFiles({
        name: "letter.txt",
        mimeType: "text/plain",
        buffer: Buffer.from("Dear umpire"),
      })
      await scene.expectValue("Evidence text", "Dear umpire")
      await picker.setInputFiles({
        name: "photo.png",
        mimeType: "image/png",
        buffer: Buffer.from([0x89, 0xff, 0xfe]),
      })
      await scene.page.getByText("photo.png is not text").waitFor()
    })

    test("what is missing is said before asking, and what the server refuses after", async () => {
      await scene.open("playground")
      await scene.page.getByLabel("Evidence text").fill(" ")
      await scene.page.getByText("Give some evidence").waitFor()
      expect(await scene.page.getByRole("button", { name: "Decide" }).isDisabled()).toBe(true)
      await scene.page.getByLabel("Evidence text").fill("a")
      await scene.page.getByLabel("Model", { exact: true }).selectOption("umpire-reserved")
      await scene.click("Decide")
      await scene.page.getByRole("alert").getByText("Cannot").waitFor()
      await scene.page.getByLabel("Model", { exact: true }).selectOption("umpire-decide")
    })

    test("options true and false are sent as booleans, and as texts where that is chosen", async () => {
      await scene.open("playground")
      await scene.pick("Examples", "Support ticket")
      await scene.pick("Actions for question 2", "Options true and false")
      await scene.page.getByLabel("Send option 2 as a boolean").click()
      await scene.click("Decide")
      await scene.click("Expand all")
      await answer(2).getByRole("meter", { name: "Probability of true" }).waitFor()
      await scene.click(/^Code$/)
      const code = (await scene.page.getByLabel("Code", { exact: true }).textContent()) ?? ""
      expect(code.match(/"value": .*/g)).toEqual(['"value": true', '"value": "false"'])
      await scene.click("Close")
    })

    test("an answer leads to the record of its request, and analytics remembers it", async () => {
      await scene.open("playground")
      await scene.pick("Examples", "Support ticket")
      await scene.click("Decide")
      const link = scene.page.getByRole("status", { name: "Result" }).getByRole("link", { name: /^seq_/ })
      const id = (await link.textContent()) ?? ""
      await link.click()
      await scene.page.getByRole("heading", { name: "Request", level: 1 }).waitFor()
      await scene.page.getByText("First byte").waitFor()
      expect(await scene.page.getByRole("region", { name: "Result" }).textContent()).toContain("success")
      await scene.page.getByRole("link", { name: "Open Analytics" }).click()
      const asked = scene.page.getByRole("list", { name: "Sent from this browser" })
      expect(
        await asked
          .getByRole("link", { name: /^The parcel arrived/ })
          .first()
          .getAttribute("href"),
      ).toContain(id)
      await scene.page.getByLabel("Sequence id").fill("seq_nothing")
      await scene.click("Find the sequence")
      await scene.page.getByText("No such request").waitFor()
    })
  })

  test("chat shows the answer as it is written, and stops", async () => {
    await scene.open("chat")
    await scene.page.getByText("Instructions and settings").click()
    await scene.page.getByLabel("Most tokens").fill("12")
    await scene.page.getByLabel("Message").fill("Say hello.")
    await scene.page.getByLabel("Message").press("Enter")
    await scene.page.getByText(/tokens in, \d+ out/).waitFor()
    expect(await scene.page.getByRole("log").getByText("The model").count()).toBe(1)
  })

  test("an evaluation runs, can be cancelled, and shows how good the answers are", async () => {
    await scene.open("evaluate")
    const rows = [
      "text,label",
      ...Array.from(
        { length: 12 },
        (_, index) =>
          `${index % 2 ? "I want my money back" : "Thank you very much"} ${index},${index % 2 ? "yes" : "no"}`,
      ),
    ]
    await upload("rows.csv", rows.join("\n"))
    await scene.page.getByLabel("Question to ask of every row").fill("Does the customer want a refund?")
    await scene.click("Evaluate 12 rows")
    await scene.page.getByText("Done: 12 of 12 rows").waitFor()
    const results = scene.page.getByRole("region", { name: "Results" })
    expect(await results.getByText("Accuracy").first().isVisible()).toBe(true)
    await results.getByLabel("Say yes from").fill("0.9")
    expect(await results.getByRole("region", { name: "Threshold" }).textContent()).toContain("Precision")
    expect(await scene.problems()).toEqual([])
    const download = scene.page.waitForEvent("download")
    await scene.click("Export all rows")
    expect(readFileSync((await (await download).path()) ?? "", "utf8").split("\n")).toHaveLength(13)
    // Held, so that the rows are not done before the click.
    const held = await holdWrites(scene.page)
    await scene.click("Evaluate 12 rows")
    await scene.click("Cancel")
    await held.release()
    await scene.page.getByText(/^Stopped: /).waitFor()
    await upload("bad.jsonl", "{")
    await scene.page.getByText("Line 1 is not JSON").waitFor()
  })

  test("the threshold shows the precision and the recall that one computes by hand", async () => {
    // What the model says is fixed here: half of these rows are yes, and it is sure in the wrong order.
    const rows = [
      [0.95, "yes"],
      [0.8, "no"],
      [0.6, "yes"],
      [0.4, "no"],
      [0.3, "yes"],
      [0.1, "no"],
    ] as const
    await scene.page.route("**/v1/decisions", async (route) => {
      const { input, model } = route.request().postDataJSON() as { input: string; model: string }
      const answers = [{ type: "predicate", name: null, probability: Number(input) }]
      await route.fulfill({ json: { model, answers, usage: { input_tokens: 1 } } })
    })
    await scene.open("evaluate")
    await upload("rows.csv", ["text,label", ...rows.map((row) => row.join(","))].join("\n"))
    await scene.page.getByLabel("Question to ask of every row").fill("Is it?")
    await scene.click("Evaluate 6 rows")
    await scene.page.getByText("Done: 6 of 6 rows").waitFor()
    const panel = scene.page.getByRole("region", { name: "Threshold" })
    for (const [threshold, figures] of [
      ["0", "Precision50.0%Recall100.0%Answered yes100.0%"],
      ["0.3", "Precision60.0%Recall100.0%Answered yes83.3%"],
      ["0.31", "Precision50.0%Recall66.7%Answered yes66.7%"],
      ["0.5", "Precision66.7%Recall66.7%Answered yes50.0%"],
      ["0.95", "Precision100.0%Recall33.3%Answered yes16.7%"],
      ["0.96", "Precisionnone to judgeRecall0.0%Answered yes0.0%"],
    ] as const) {
      await panel.getByLabel("Say yes from").fill(threshold)
      expect([threshold, await panel.locator("dl").textContent()]).toEqual([threshold, figures])
    }
    await scene.page.unroute("**/v1/decisions")
  })
}
