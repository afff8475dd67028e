/** The playground and chat in a browser. */
import type { Locator } from "playwright-core"
import { describe, expect, test } from "vitest"
import { type Scene, watchFor } from "./console-scene.ts"

export function tryingTests(scene: Scene): void {
  const answer = (number: number): Locator =>
    scene.page.getByRole("group", { name: `Answer to question ${number}` })
  /** Resolves when the answers to the last request have come; those of an earlier one stay until then. */
  const answered = async (): Promise<void> => {
    await scene.page.getByRole("button", { name: "Decide" }).waitFor()
    await scene.page.getByRole("button", { name: /^(?:Expand|Collapse) all$/ }).waitFor()
  }
  describe("the playground", () => {
    test("asks every kind of question by keyboard and shows probabilities, tokens, latency and cost", async () => {
      await scene.open("playground")
      await scene.pick("Examples", "Support ticket")
      await scene.page.keyboard.press("Control+Enter")
      await answered()
      // One line each, and every probability on demand.
      await expect
        .poll(async () => await scene.page.getByRole("meter", { name: /^Probability/ }).count())
        .toBe(0)
      await answer(2).getByRole("button").click()
      await expect.poll(async () => await answer(2).getByRole("meter").count()).toBe(3)
      await expect
        .poll(async () => await answer(2).textContent())
        .toMatch(/Confidence [\d.<>]+%: how far the winner is above/)
      await scene.click("Expand all")
      await expect
        .poll(async () => await answer(3).textContent())
        .toMatch(/Confidence [\d.<>]+%: how closely the levels gather/)
      // What such a probability has been worth: one line for each answer.
      const worth = scene.page.getByText(
        /answers as sure as this are right\. Stated and true shares were \d points apart/,
      )
      await expect.poll(async () => await worth.count()).toBe(3)
      await scene.click("Collapse all")
      await scene.click("Copy answers")
      await expect
        .poll(async () => await scene.page.evaluate("navigator.clipboard.readText()"))
        .toMatch(
          /^[^\t\n]+\t(?:Yes|No) \([\d.<>]+%\)\n[^\t\n]+\t[^\t\n]+ \([\d.<>]+%\)\n[^\t\n]+\t[^\t\n]+ of 2\)/,
        )
      const result = scene.page.getByRole("status", { name: "Result" })
      await expect
        .poll(async () => await result.textContent())
        .toMatch(/Tokens\d+.*Latency.*(?:ms|s).*Cost\$0\.0\d+LanguageEnglishumpire-decide/)
    })

    test("what the model is bad at is said where the question looks like it, and System One is explained", async () => {
      const care = scene.page.getByRole("note", { name: "Take care" })
      await expect.poll(async () => await care.count()).toBe(0)
      await scene.page
        .getByLabel("Text to judge")
        .fill("Ich warte seit drei Wochen und niemand ruft mich zurück, was ist los?")
      await care.getByText("less often right at texts in another language than English").waitFor()
      // The model for many languages is offered, and nothing is held against it.
      const model = scene.page.getByLabel("Model", { exact: true })
      const before = await model.inputValue()
      await care.getByText("umpire-decide-multilingual has learnt 15 languages.").waitFor()
      await scene.expectSound()
      await scene.click("Use umpire-decide-multilingual")
      await expect.poll(async () => await care.count()).toBe(0)
      await scene.click("Decide")
      const result = scene.page.getByRole("status", { name: "Result" })
      await expect
        .poll(async () => await result.textContent())
        .toMatch(/LanguageGerman.*umpire-decide-multilingual/)
      await model.selectOption(before)
      await care.waitFor()
      await scene.page.getByLabel("System One").check()
      await scene.page.getByText("System One is another form of the same request").waitFor()
      await scene.page.getByLabel("Decisions", { exact: true }).check()
      await scene.pick("Examples", "Support ticket")
      await expect.poll(async () => await care.count()).toBe(0)
    })

    test("questions and options are added, ordered and removed", async () => {
      await scene.open("playground")
      await scene.pick("Add question", "Score on levels")
      await scene.page.getByLabel("Text of question 4").fill("How polite is it?")
      const card = scene.page.getByRole("region", { name: "Question 4" })
      await card.getByRole("button", { name: "Add level" }).click()
      await card.getByLabel("Level 4", { exact: true }).fill("extreme")
      await card.getByLabel("Level 4", { exact: true }).press("Alt+ArrowUp")
      await expect
        .poll(async () => await card.getByLabel("Level 3", { exact: true }).inputValue())
        .toBe("extreme")
      await card.getByLabel("Move level 3", { exact: true }).press("ArrowUp")
      await expect
        .poll(async () => await card.getByLabel("Level 2", { exact: true }).inputValue())
        .toBe("extreme")
      await scene.pick("Actions for question 4", "Move up")
      await expect
        .poll(async () => await scene.page.getByLabel("Text of question 3").inputValue())
        .toBe("How polite is it?")
      // Both ends must be in view: a page that scrolls under a drag drops it elsewhere.
      await scene.page.getByRole("heading", { name: "Playground" }).scrollIntoViewIfNeeded()
      await scene.page
        .getByLabel("Move question 2", { exact: true })
        .dragTo(scene.page.getByLabel("Text of question 1"))
      const refund = "Does the customer ask for a refund?"
      await expect
        .poll(async () => await scene.page.getByLabel("Text of question 2").inputValue())
        .toBe(refund)
      // By keyboard the handle keeps the focus, so that the next press goes on.
      await scene.page.getByLabel("Move question 2", { exact: true }).focus()
      await scene.page.keyboard.press("ArrowDown")
      await scene.page.keyboard.press("ArrowUp")
      await scene.page.keyboard.press("ArrowUp")
      await expect
        .poll(async () => await scene.page.getByLabel("Text of question 1").inputValue())
        .toBe(refund)
      await expect.poll(async () => await scene.page.getByText("Moved to place 1 of 4.").count()).toBe(1)
      await scene.pick("Actions for question 3", "Remove")
      await expect
        .poll(async () => await scene.page.getByRole("region", { name: /^Question \d/ }).count())
        .toBe(3)
    })

    test("the questions stand still when the first steps have loaded", async () => {
      const held = Promise.withResolvers<void>()
      await scene.page.route("**/resources", async (route) => {
        await held.promise
        await route.continue()
      })
      await scene.page.goto(`${scene.server.url}/o/${scene.orgId}/playground`)
      const steps = scene.page.getByRole("region", { name: "Getting started" })
      const add = scene.page.getByRole("button", { name: "Add question" })
      await steps.waitFor()
      await expect.poll(async () => await steps.getAttribute("aria-busy")).toBe("true")
      const before = await add.boundingBox()
      held.resolve()
      await expect.poll(async () => await steps.getAttribute("aria-busy")).toBe("false")
      expect(await add.boundingBox()).toEqual(before)
      await scene.page.unrouteAll({ behavior: "wait" })
    })

    test("System One, and a second model beside the first, answer the same questions", async () => {
      await scene.open("playground")
      await scene.pick("Examples", "Support ticket")
      await scene.page.getByLabel("System One").check()
      await scene.click("Compare")
      await scene.page.getByLabel("Second model").selectOption("smollm2-135m-instruct")
      await scene.click("Decide")
      // The last answers stay until both models have answered.
      const records = scene.page.getByRole("status", { name: "Result" }).getByRole("link", { name: /^seq_/ })
      await records.nth(1).waitFor()
      const names = scene.page.getByRole("region", { name: "Answers" }).getByTitle(/^(?:umpire|smollm2)-/)
      await expect
        .poll(async () => await names.allTextContents())
        .toEqual(["umpire-decide", "smollm2-135m-instruct"])
      await scene.click("Expand all")
      await expect.poll(async () => await answer(1).getByRole("meter").count()).toBe(4)
      await scene.click("Stop comparing")
      await scene.page.getByLabel("Decisions").check()
    })

    test("what is run in this browser is answered without a word to the gateway", async () => {
      await scene.open("playground")
      await scene.pick("Examples", "Support ticket")
      const asked: string[] = []
      scene.page.on("request", (request) => void asked.push(new URL(request.url()).pathname))
      await scene.page.getByLabel("Run in this browser").check()
      await scene.click("Decide")
      const result = scene.page.getByRole("status", { name: "Result" })
      await result.getByText("umpire-decide-small").waitFor()
      expect(await result.getByRole("link", { name: /^seq_/ }).count()).toBe(0)
      expect(asked).toContain("/browser/umpire-decide-small.onnx")
      expect(asked.filter((path) => path.startsWith("/v1/decisions"))).toEqual([])
      await scene.page.getByLabel("Run in this browser").uncheck()
      await scene.click("Decide")
      await result.getByRole("link", { name: /^seq_/ }).waitFor()
      expect(asked).toContain("/v1/decisions")
    })

    test("in this browser a text in another language is warned of for the model that runs there", async () => {
      await scene.open("playground")
      await scene.page
        .getByLabel("Text to judge")
        .fill("Das Paket kam zwei Wochen zu spät, und ich möchte mein Geld zurück.")
      const care = scene.page.getByRole("note", { name: "Take care" })
      await care.getByText(/^umpire-decide is less often right at/).waitFor()
      await scene.page.getByLabel("Run in this browser").check()
      await care.getByText(/^umpire-decide-small is less often right at/).waitFor()
      await care.getByRole("button", { name: "Use umpire-decide-multilingual" }).click()
      expect(await scene.page.getByLabel("Run in this browser").isChecked()).toBe(false)
      await care.waitFor({ state: "detached" })
    })

    test("code, link and history bring the same request elsewhere and back", async () => {
      await scene.open("playground")
      await scene.page.getByLabel("Text to judge").fill("A very particular piece of evidence.")
      await scene.click(/^Code$/)
      await scene.page.getByLabel("Python").check()
      await expect
        .poll(async () => await scene.page.getByLabel("Code", { exact: true }).textContent())
        .toContain("A very particular piece")
      await scene.click("Close")
      const told = await watchFor(scene.page, "button", "Link copied")
      await scene.click("Share")
      await told()
      const shared = String(await scene.page.evaluate("navigator.clipboard.readText()"))
      await scene.click("Decide")
      await answered()
      await scene.page.getByLabel("Text to judge").fill("Something else.")
      await scene.page.goto("about:blank")
      await scene.page.goto(shared)
      await scene.expectValue("Text to judge", "A very particular piece of evidence.")
      // Pasted into the open page, again and again: it replaces the draft, which can be had back.
      for (const draft of ["Something else.", "And something else."]) {
        await scene.page.getByLabel("Text to judge").fill(draft)
        await scene.page.goto(shared)
        await scene.expectValue("Text to judge", "A very particular piece of evidence.")
        await scene.click("Undo")
        await scene.expectValue("Text to judge", draft)
      }
      await scene.page.goto(shared)
      await scene.expectValue("Text to judge", "A very particular piece of evidence.")
      await scene.page.getByLabel("Text to judge").fill("Something else.")
      await scene.click("History")
      await scene.dialog().getByText("A very particular piece").first().click()
      await scene.expectValue("Text to judge", "A very particular piece of evidence.")
    })

    test("undo brings back the removed question alone, and is offered until the next edit", async () => {
      const questions = (): Locator => scene.page.getByRole("region", { name: /^Question \d/ })
      await scene.open("playground")
      await scene.pick("Examples", "Support ticket")
      await scene.pick("Actions for question 1", "Remove")
      await expect.poll(async () => await questions().count()).toBe(2)
      await scene.click("Undo")
      await expect.poll(async () => await questions().count()).toBe(3)
      await scene.pick("Actions for question 1", "Remove")
      await scene.page.getByRole("button", { name: "Undo" }).waitFor()
      await scene.page.getByLabel("Text to judge").fill("Written since.")
      await scene.page.getByRole("button", { name: "Undo" }).waitFor({ state: "detached" })
      await scene.expectValue("Text to judge", "Written since.")
    })

    test("where the browser refuses to copy, the link is there to copy by hand", async () => {
      await scene.open("playground")
      await scene.page.evaluate(`{
        navigator.clipboard.writeText = () => Promise.reject(new DOMException("Write permission denied."))
        document.execCommand = () => false
      }`)
      await scene.click("Share")
      const text = scene.dialog().getByLabel("Text to copy")
      await expect.poll(async () => await text.inputValue()).toContain("/playground#d=")
      await scene.page.getByText("The browser did not allow this page to copy.").waitFor()
      const selected = String(await scene.page.evaluate("getSelection().toString()"))
      expect(selected).toBe(await text.inputValue())
      await scene.expectSound()
      await scene.submit("Done")
      await expect.poll(async () => await scene.page.getByText("Link copied").count()).toBe(0)
    })

    test("a file becomes evidence, and one that is not text is refused in words", async () => {
      await scene.open("playground")
      const picker = scene.page.getByLabel("Text file")
      await picker.setInputFiles({
        name: "letter.txt",
        mimeType: "text/plain",
        buffer: Buffer.from("Dear umpire"),
      })
      await scene.expectValue("Text to judge", "Dear umpire")
      await picker.setInputFiles({
        name: "photo.png",
        mimeType: "image/png",
        buffer: Buffer.from([0x89, 0xff, 0xfe]),
      })
      await scene.page.getByText("photo.png is not text").waitFor()
    })

    test("what is missing is said before asking, and what the server refuses after", async () => {
      await scene.open("playground")
      await scene.page.getByLabel("Text to judge").fill(" ")
      await scene.page.getByText("Give a text").waitFor()
      await expect
        .poll(async () => await scene.page.getByRole("button", { name: "Decide" }).isDisabled())
        .toBe(true)
      await scene.page.getByLabel("Text to judge").fill("a")
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
      await answered()
      await scene.click("Expand all")
      await answer(2).getByRole("meter", { name: "Probability of true" }).waitFor()
      await scene.click(/^Code$/)
      const code = (await scene.page.getByLabel("Code", { exact: true }).textContent()) ?? ""
      expect(code.match(/"value": .*/g)).toEqual(['"value": true', '"value": "false"'])
      await scene.click("Close")
    })

    test("an answer leads to the record of its request, and the record to all requests", async () => {
      await scene.open("playground")
      await scene.pick("Examples", "Support ticket")
      await scene.click("Decide")
      const link = scene.page.getByRole("status", { name: "Result" }).getByRole("link", { name: /^seq_/ })
      const id = (await link.textContent()) ?? ""
      await link.click()
      await scene.page.getByRole("heading", { name: "Request", level: 1 }).waitFor()
      await scene.page.getByRole("list", { name: "Timing" }).getByText("Total").waitFor()
      await expect
        .poll(async () => await scene.page.getByRole("region", { name: "Result" }).textContent())
        .toContain("success")
      await scene.click("All requests")
      await scene.page.getByRole("table", { name: "Requests" }).locator(`a[href$="${id}"]`).waitFor()
      const find = scene.page.getByLabel("Sequence id or request id")
      await find.fill("seq_nothing")
      await find.press("Enter")
      await scene.page.getByText("No such request").waitFor()
    })
  })

  test("chat shows the answer as it is written, and stops", async () => {
    await scene.open("chat")
    await scene.page.getByText("Instructions and settings").click()
    await scene.page.getByLabel("Message").fill("Say hello.")
    await scene.page.getByLabel("Most tokens").fill("many")
    await scene.page.getByRole("alert").getByText("Most tokens: A whole number is needed.").waitFor()
    expect(await scene.page.getByRole("button", { name: "Send" }).isDisabled()).toBe(true)
    await scene.page.getByLabel("Most tokens").fill("2")
    await scene.page.getByLabel("Message").press("Enter")
    await scene.page.getByText(/tokens in, 2 out/).waitFor()
    await scene.page.getByText("The answer was cut off at 2 tokens").waitFor()
    const log = scene.page.getByRole("log")
    await expect.poll(async () => await log.getByText("The model").count()).toBe(1)
    await log.getByRole("button", { name: "Copy answer" }).click()
    const copied = async (): Promise<string> =>
      String(await scene.page.evaluate("navigator.clipboard.readText()"))
    await expect
      .poll(async () => ((await log.textContent()) ?? "").includes((await copied()).trim()))
      .toBe(true)
    await scene.expectSound()
    // The conversation waits while another page is looked at, and goes on with another model.
    await scene.open("models")
    const model = scene.page.getByRole("article", { name: "smollm2-135m-instruct" })
    await model.getByRole("button", { name: "Chat" }).click()
    await log.getByText("Say hello.").waitFor()
    const asked = scene.page.getByLabel("Model", { exact: true })
    await expect.poll(async () => await asked.inputValue()).toBe("smollm2-135m-instruct")
    await scene.click("New chat")
    await scene.page.getByText("Say something").waitFor()
  })
}
