/** Question sets in a browser: saved from the playground, taught from a file, published, asked, reviewed, taught again. */
import { readFileSync } from "node:fs"
import OpenAI from "openai"
import { expect, test } from "vitest"
import { createClient } from "../src/contract/client.ts"
import { ownerOf } from "./console.ts"
import { expectSoundPage, useScene } from "./console-scene.ts"
import { startTests } from "./console-start.ts"

const scene = useScene()

/** On a busy machine a text takes about a second. */
const teachMs = 120_000

const refunds = (n: number): string => `Please refund the ${20 + n} dollars that you charged me twice.`
const weather = (n: number): string => `It will be sunny with a light wind in valley number ${n} today.`
const rows = Array.from({ length: 120 }, (_, n) => (n % 2 === 0 ? `${refunds(n)},yes` : `${weather(n)},no`))

const openTab = async (name: string | RegExp): Promise<void> =>
  await scene.page.getByRole("navigation", { name: "Parts of the set" }).getByRole("link", { name }).click()

const upload = async (text: string | Buffer): Promise<void> =>
  await scene.page
    .getByLabel("Examples file")
    .setInputFiles({ name: "rows.csv", mimeType: "text/csv", buffer: Buffer.from(text) })

const uploadSays = async (words: string): Promise<void> =>
  await scene.page.getByRole("status", { name: "Result of the upload" }).getByText(words).waitFor()

test("without sets the page says what they are and leads to the playground", async () => {
  await scene.open("sets")
  await scene.page.getByText("No question sets yet").waitFor()
  await expect.poll(async () => await scene.problems()).toEqual([])
  await scene.page.getByRole("link", { name: "Open the playground" }).click()
  await scene.page.getByRole("heading", { name: "Playground" }).waitFor()
})

test("the playground's questions are saved as a set", async () => {
  await scene.open("playground")
  await scene.pick("Examples", "Support ticket")
  await scene.pick("Actions for question 3", "Remove")
  await scene.pick("Actions for question 2", "Remove")
  await scene.page.getByLabel("Name of question 1").fill("wants refund")
  await scene.click("Save as set")
  const dialog = scene.dialog()
  await dialog.getByLabel("Name", { exact: true }).fill("Refunds!")
  await dialog.getByRole("alert").getByText("a-z, 0-9").waitFor()
  await dialog.getByLabel("Name", { exact: true }).fill("refunds")
  await dialog.getByLabel("Description").fill("Letters to support")
  await scene.submitTwice("Save set")
  await scene.page.getByRole("heading", { name: "refunds", level: 1 }).waitFor()
  await scene.expectValue("Name of question 1", "wants_refund")
  expect(scene.complaints).toEqual([])
})

test("rules are written as lines, and what cannot be read is said", async () => {
  const rules = scene.page.getByLabel("Rules (optional)")
  await rules.fill("input.tier == 1")
  await scene.page.getByText("Write “condition => answer”").waitFor()
  await rules.fill("input.tier = 1 => yes")
  await scene.click("Save version 2")
  await scene.page.getByText(/a rule cannot be used/).waitFor()
  await rules.fill('input.tier == "gold" => yes')
  await rules.blur()
  await expect.poll(async () => await scene.problems()).toEqual([])
  await rules.fill("")
  await rules.blur()
  await scene.page.getByText("This is version 1.").waitFor()
})

test("a change of the questions becomes a version, and the difference is shown", async () => {
  // With as many digits as teaching chooses.
  await scene.page.getByLabel("Threshold, %").fill("95.85893085")
  await scene.page.getByLabel("Threshold, %").blur()
  await scene.expectValue("Threshold, %", "95.85893085")
  expect(await scene.page.getByText("A number is needed").count()).toBe(0)
  await scene.page.getByLabel("Threshold, %").fill("100")
  // What is being written stays while another tab or page is looked at.
  await openTab("Versions")
  await scene.open("sets")
  await scene.page.getByText("Unsaved changes").waitFor()
  await scene.page.getByRole("link", { name: "refunds" }).click()
  await scene.page.getByText(/^Your changes of .* not saved yet\.$/).waitFor()
  await scene.expectValue("Threshold, %", "100")
  await scene.page.getByPlaceholder("Why (optional)").fill("as sure as can be")
  await scene.click("Save version 2")
  await scene.page.getByText("Saved as version 2.").waitFor()
  await openTab("Versions")
  await scene.page.getByRole("cell", { name: "as sure as can be" }).waitFor()
  await scene.page.getByLabel("What changed").getByText("questions.wants_refund.threshold").waitFor()
  await expect.poll(async () => await scene.problems()).toEqual([])
})

test("a file of labelled rows is uploaded, and what is wrong with it is named", async () => {
  await openTab("Examples")
  await upload(["input,wants_refund", ...rows].join("\n"))
  await uploadSays("120 added")
  await upload(["input,wants_refund", rows[0], `${refunds(2)},no`, "Hello,maybe"].join("\n"))
  await uploadSays("0 added, 1 duplicate, 1 contradicting, 1 refused")
  await scene.page.getByText('Row 3: "maybe" is no answer to wants_refund').waitFor()
  await scene.page.getByText("Row 2: wants_refund is true, the file says false").waitFor()
  await upload("sentence,label\nHello,yes\nGoodbye,no\n")
  await scene.page.getByText("The file has no column input. Its columns are sentence, label.").waitFor()
  await scene.expectSound()
  expect(scene.complaints).toEqual([])
})

test("an example is labelled in place and deleted", async () => {
  const first = scene.page.getByRole("row").nth(1)
  const label = first.getByRole("combobox")
  const before = await label.inputValue()
  const text = (await first.getByRole("cell").first().textContent()) ?? ""
  await label.selectOption({ label: "no label" })
  await expect.poll(async () => [await label.isEnabled(), await label.inputValue()]).toEqual([true, ""])
  await label.selectOption(before)
  await expect.poll(async () => [await label.isEnabled(), await label.inputValue()]).toEqual([true, before])
  // As a German Excel saves it, with a row that has nothing in its cells.
  await upload(Buffer.from("input;wants_refund\n;\nGrüße, und tschüß.;no\n", "latin1"))
  await uploadSays("1 added.")
  await scene.page.getByRole("button", { name: "Actions for Grüße, und tschüß." }).click()
  await scene.page.getByRole("menuitem", { name: "Delete" }).click()
  await scene.submit("Delete example")
  const deleted = scene.page.getByRole("cell", { name: "Grüße, und tschüß.", exact: true })
  await deleted.waitFor({ state: "detached" })
  await scene.page.getByRole("cell", { name: text }).first().waitFor()
})

test("an example is added by hand with the answer of the set, and frozen as a case", async () => {
  const text = "The parcel came broken; give me my money back."
  await scene.click("Add example")
  await scene.page.getByLabel("Text", { exact: true }).fill(text)
  await scene.submit("Ask the set")
  // The threshold is 100 %, which no answer reaches: the label is for a person to choose.
  await scene.page.getByText(/^The set abstains/).waitFor()
  await scene.expectSound()
  await scene.page.getByLabel("Answer to wants_refund").selectOption("yes")
  await scene.submit("Add example")
  await scene.page.getByRole("cell", { name: text, exact: true }).waitFor()
  await scene.pick(`Actions for ${text}`, "Freeze as case")
  await scene.page.getByText("Frozen: see Cases.").waitFor()
  await openTab(/^Cases/)
  await scene.page.getByRole("table", { name: "Frozen cases" }).getByText(text).waitFor()
  await scene.page.getByLabel("Compared with").selectOption("1")
  await scene.click("Run check")
  await scene.page.getByText("Version 2 gives every expected answer that it does not abstain from.").waitFor()
  await scene.page.getByRole("table", { name: "Differences by question" }).getByText("wants_refund").waitFor()
  await scene.expectSound()
})

test("the rows of an evaluation become examples of a set", async () => {
  await scene.open("evaluate")
  const file = [
    "text,label",
    rows[0],
    "Return what I paid for the broken lamp.,yes",
    "It rains in the hills.,no",
  ]
  await scene.page
    .getByLabel("Labelled file")
    .setInputFiles({ name: "rows.csv", mimeType: "text/csv", buffer: Buffer.from(file.join("\n")) })
  await scene.page.getByLabel("Question to ask of every row").fill("Does the customer want a refund?")
  await scene.click("Evaluate 3 rows")
  await scene.page.getByText("Done: 3 of 3 rows").waitFor()
  await scene.click("Teach a set from these rows")
  await scene.dialog().getByLabel("Question set").selectOption("refunds")
  await scene.dialog().getByLabel("Question that the labels answer").selectOption("wants_refund")
  await scene.expectSound()
  await scene.submitTwice("Save 3 examples")
  await scene.page.getByText("2 examples saved, 1 known already. Teach the set to learn from them.").waitFor()
  // Or a set is made of the question and its rows.
  await scene.click("Teach a set from these rows")
  await scene.dialog().getByLabel("Question set").selectOption("A new set with this question")
  await scene.dialog().getByLabel("Name of the set").fill("of-an-evaluation")
  await scene.submitTwice("Save 3 examples")
  await scene.page.getByRole("link", { name: "Teach of-an-evaluation" }).waitFor()
  // The same rows, asked of the set itself.
  await scene.click("Evaluate again")
  await scene.page.getByText("A question of a set").click()
  await scene.page.getByLabel("Question set").selectOption("refunds")
  await scene.expectValue("Question that the labels answer", "wants_refund")
  await scene.click("Evaluate 3 rows")
  await scene.page.getByText(/^set:refunds@\d+$/).waitFor()
  await scene.page.getByText("Done: 3 of 3 rows").waitFor()
  await scene.page.getByRole("region", { name: "Results" }).getByText("Accuracy").first().waitFor()
  await scene.open("sets")
  await scene.page.getByRole("link", { name: "refunds" }).click()
})

test("teaching shows its progress and what it found", { timeout: 2 * teachMs }, async () => {
  await openTab("Teach")
  await scene.click("Teach from 123 examples")
  await scene.page
    .getByText("Version 3 was taught. Look at the figures, then publish it")
    .waitFor({ timeout: teachMs })
  const panel = scene.page.getByRole("region", { name: "wants_refund" })
  await panel.getByText("Taught", { exact: true }).waitFor()
  // Teaching publishes nothing.
  await scene.page.getByText("Production: version 1").waitFor()
  await panel.getByText("Accuracy (higher is better)").waitFor()
  await panel.getByText("ECE: by how much the stated confidence misses").waitFor()
  await panel.getByText("The squared distance between the stated probabilities and the truth").waitFor()
  await panel.getByText("Accuracy by the number of labels").waitFor()
  await expect.poll(async () => await panel.textContent()).toMatch(/always giving the most frequent label/)
  await expect.poll(async () => await scene.problems()).toEqual([])
  await openTab("Threshold")
  await scene.page.getByRole("img", { name: /^Risk against coverage/ }).waitFor()
  await expect.poll(async () => await scene.problems()).toEqual([])
  await scene.page.getByRole("slider", { name: "Threshold" }).fill("0.9")
  await scene.click("Use 90.0% as threshold")
  await scene.expectValue("Threshold, %", "90")
  await scene.click("Discard")
  await scene.expectValue("Threshold, %", "100")
  expect(scene.complaints).toEqual([])
})

test("a taught version is published and asked by the client of openai, which sees the abstention", async () => {
  await openTab("Teach")
  await scene.click("Publish version 3")
  await scene.submit("Publish")
  await scene.page.getByText("Production: version 3").waitFor()
  const client = new OpenAI({ apiKey: scene.server.key, baseURL: `${scene.server.url}/v1` })
  const { data, response } = await client.decisions
    .create({ model: "set:refunds", input: "Give me back what I paid, please.", questions: [] })
    .withResponse()
  expect(data.answers).toEqual([
    expect.objectContaining({
      verdict: expect.objectContaining({ value: "abstain", abstained: true, threshold: 1 }) as object,
    }),
  ])
  note(data.answers)
  expect(response.headers.get("x-umpire-question-set")).toBe("refunds@3")
  // The threshold is 100 %, which no answer reaches.
  expect(response.headers.get("x-umpire-abstained")).toBe("wants_refund")
})

test("a shadow answers beside the published version until it is stopped, and the report says how it differs", async () => {
  await openTab("Shadow")
  await scene.page.getByLabel("Version", { exact: true }).selectOption("1")
  await scene.page.getByLabel("Share of requests, %").fill("100")
  await scene.page.getByLabel("At most a day, $").fill("0.25")
  await scene.click("Start shadow")
  await scene.page.getByText("for at most $0.25 a day").waitFor()
  await scene.page.getByText("Version 1 answers 100.0% of the requests").waitFor()
  await ask(refunds(1))
  const report = scene.page.getByRole("table", { name: "How the answers differ" })
  await report.getByText("Version 1 beside 3").waitFor()
  await report.getByRole("columnheader", { name: "Kappa" }).waitFor()
  await scene.page.getByRole("group", { name: "Confusion matrix" }).waitFor()
  await expect.poll(async () => await scene.problems()).toEqual([])
  await scene.click("Stop")
  await scene.page.getByRole("button", { name: "Start shadow" }).waitFor()
})

/** How sure the published versions were of the answers to live requests. */
const confidences: number[] = []

function note(answers: unknown): void {
  for (const { verdict } of answers as { verdict: { confidence: number } }[])
    confidences.push(verdict.confidence)
}

async function ask(input: string): Promise<void> {
  const response = await scene.server.post("/v1/decisions", { model: "set:refunds", input, questions: [] })
  expect(response.status).toBe(200)
  note(((await response.json()) as { answers: unknown }).answers)
}

const plural = (answers: number): string => `${answers} answer${answers === 1 ? "" : "s"}`

/** As many as teaching again pays from. */
const labelsWanted = 20

test(
  "a doubtful answer goes through the review queue and teaches the set",
  { timeout: 2 * teachMs },
  async () => {
    await openTab("Review")
    // Nothing is kept unless an owner chooses it: the page says so and offers it.
    await scene.page.getByText("People can review doubtful answers here").waitFor()
    await expect.poll(async () => await scene.problems()).toEqual([])
    await scene.click("Keep texts and answers for 30 days")
    await scene.page.getByText("Nothing waits for review").waitFor()
    const doubtful = Array.from(
      { length: labelsWanted },
      (_, n) => `${n % 2 === 0 ? refunds(n) : weather(n)} Thanks.`,
    )
    for (const input of doubtful) await ask(input)
    // The same text is reviewed once, and one that is labelled already is not.
    await ask(doubtful[0] ?? "")
    await ask(refunds(0))

    const card = scene.page.getByRole("article", { name: "Review of wants_refund" })
    const evidence = card.getByRole("region", { name: "Text", exact: true })
    await card.waitFor()
    await scene.page.getByText(`${labelsWanted} answers`, { exact: true }).waitFor()
    await card.getByText("The set abstained", { exact: true }).waitFor()
    await expect.poll(async () => await scene.problems()).toEqual([])
    await scene.click("Label these 10")
    await card.getByText("Proposed to label next", { exact: true }).waitFor({ timeout: teachMs })
    await scene.page.getByText("10 texts of 20 were put first in the queue, for wants_refund.").waitFor()
    await expect.poll(async () => await scene.problems()).toEqual([])
    // The first is skipped by mistake: undone, it is in front again.
    const first = (await evidence.textContent()) ?? ""
    await scene.page.keyboard.press("s")
    await evidence.filter({ hasNotText: first }).waitFor()
    await scene.page.keyboard.press("u")
    await evidence.filter({ hasText: first }).waitFor()
    // The same over all sets, led to by the number beside the page's name.
    const link = scene.page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: "Review" })
    await link.getByText(`${labelsWanted} waiting`).waitFor({ state: "attached" })
    await link.click()
    await scene.page.getByRole("heading", { name: "Review", level: 1 }).waitFor()
    await scene.page.getByRole("link", { name: `refunds ${labelsWanted} waiting` }).waitFor()
    await card.waitFor()
    await scene.expectSound()
    for (let done = 1; done <= labelsWanted; done++) {
      const text = (await evidence.textContent()) ?? ""
      await scene.page.keyboard.press(text.includes("refund") ? "y" : "n")
      await scene.page.getByText(`${plural(done)} decided in this visit`).waitFor()
    }
    await scene.page.getByText("Nothing waits for review").waitFor()
    await link.getByText("waiting").waitFor({ state: "detached" })
    await scene.open("sets")
    await scene.page.getByRole("link", { name: "refunds" }).click()
    await openTab("Review")

    await scene.page.getByText(`${labelsWanted} labels since the set was last taught`).waitFor()
    await scene.click("Teach again")
    await scene.page
      .getByText("Version 4 was taught. Look at the figures, then publish it")
      .waitFor({ timeout: teachMs })
    // The labels are examples of the set now.
    await openTab("Examples")
    await scene.page.getByLabel("Search the texts of examples").fill("no such words")
    await scene.page.getByText("No example with “no such words”").waitFor()
    await scene.page.getByLabel("Search the texts of examples").fill("THANKS")
    await scene.page
      .getByRole("cell", { name: doubtful[0] ?? "", exact: true })
      .first()
      .waitFor()
    expect(scene.complaints).toEqual([])
  },
)

test("a batch of the set counts its abstentions as monitoring does, and shows them", async () => {
  await scene.open("batches")
  await scene.click("New batch")
  const table = ["message", refunds(2), weather(3), refunds(4)].join("\n")
  await scene.page
    .getByLabel("Table", { exact: true })
    .setInputFiles({ name: "letters.csv", mimeType: "text/csv", buffer: Buffer.from(table) })
  await scene.page.getByLabel("Question set", { exact: true }).selectOption("refunds")
  await scene.click("Start with 3 rows")
  await scene.page.getByText("Done: 3 of 3 rows").waitFor()
  const counts = scene.page.getByRole("list", { name: "Answers to wants_refund" })
  await expect
    .poll(async () => await counts.getByRole("listitem").allTextContents())
    .toEqual(["abstain3 (100.0%)"])
  const answers = scene.page.getByRole("table", { name: "Answers" })
  await expect.poll(async () => await answers.getByText("abstain", { exact: true }).count()).toBe(3)
  await scene.expectSound()
  const download = scene.page.waitForEvent("download")
  await scene.click("Answers as JSONL")
  const lines = readFileSync((await (await download).path()) ?? "", "utf8")
    .trim()
    .split("\n")
  for (const line of lines) {
    // The contract's form of a line of a batch.
    const { response } = JSON.parse(line) as { response: { body: { answers: unknown } } }
    note(response.body.answers)
  }
  await scene.open("sets")
  await scene.page.getByRole("link", { name: "refunds" }).click()
})

test("monitoring shows how the answers are distributed", async () => {
  await openTab("Monitoring")
  const panel = scene.page.getByRole("region", { name: "wants_refund" })
  await panel.getByRole("img", { name: /^Abstained: 100.0%/ }).waitFor()
  // Live requests alone count: no evaluation, no check, no review and nothing that was tried.
  await scene.page.getByText(`${confidences.length} answers since`).waitFor()
  const mean = confidences.reduce((sum, one) => sum + one, 0) / confidences.length
  const shown = /mean ([\d.]+)%/.exec((await panel.textContent()) ?? "")?.[1]
  expect(Math.abs(Number(shown) / 100 - mean)).toBeLessThan(0.0006)
  await panel.getByText("Too few answers for drift").waitFor()
  await scene.page.getByLabel("Compared with").selectOption("Choose dates")
  await scene.page.getByText("Choose the first and the last day").waitFor()
  await expect.poll(async () => await scene.problems()).toEqual([])
})

test("the list, the command palette and the snippets know the set", async () => {
  await scene.open("sets")
  const row = scene.page.getByRole("row", { name: /refunds/ })
  await expect
    .poll(async () => await row.textContent())
    .toMatch(/Letters to support.*umpire-decide.*Version 4.*Version 3.*143/)
  await scene.page.keyboard.press("Control+k")
  await scene.dialog().getByRole("combobox").fill("letters to")
  await scene
    .dialog()
    .getByRole("option", { name: /refunds/ })
    .waitFor()
  await scene.page.keyboard.press("Enter")
  await scene.page.getByRole("heading", { name: "refunds", level: 1 }).waitFor()
  await openTab("Use")
  await scene.page.getByLabel("OpenAI SDK").check()
  await expect
    .poll(async () => await scene.page.getByLabel("Code", { exact: true }).textContent())
    .toContain("set:refunds")
  await scene.page.getByLabel("Command line").check()
  await expect
    .poll(async () => await scene.page.getByLabel("Code", { exact: true }).textContent())
    .toContain("umpire sets pull refunds")
})

test("a set is tried from the playground and on its page; a wrong answer is corrected with one click and is an example", async () => {
  await scene.open("playground")
  await scene.page.getByLabel("Text to judge").fill("Send my money back, please.")
  await scene.page.getByLabel("Model", { exact: true }).selectOption("set:refunds")
  await scene.page.getByRole("heading", { name: "refunds", level: 1 }).waitFor()
  const text = scene.page.getByLabel("Text", { exact: true })
  await expect.poll(async () => await text.inputValue()).toBe("Send my money back, please.")
  await scene.click("Ask the set")
  const answer = scene.page.getByRole("listitem", { name: "Answer to wants_refund" })
  await answer.getByText(/sure · below the threshold of 100.0% · /).waitFor()
  await scene.page.getByText("Version 3 answered.").waitFor()
  const right = answer.getByRole("group", { name: "Right answer to wants_refund" })
  await right.getByRole("button", { name: "yes" }).click()
  await answer.getByText("Saved as an example: ").waitFor()
  await scene.expectSound()
  await scene.page.getByRole("link", { name: "Teach it" }).click()
  await scene.page.getByText("Teach from the examples").waitFor()
})

test("a reviewer labels with keys, and is offered nothing that only members may do", async () => {
  const { api } = await ownerOf(scene.server)
  const who = { email: "rita@example.com", password: "a long enough one" }
  const { accept_token: token } = await api.createInvitation({
    params: { org_id: scene.orgId },
    body: { email: who.email, role: "reviewer" },
  })
  const accepted = { token: token ?? "", name: "Rita", password: who.password }
  await createClient(scene.server.url, {}).acceptInvitation({ body: accepted })
  await ask("Give me back the 9 dollars for the lamp.")
  const guest = await scene.browser.openElsewhere()
  await guest.goto(scene.server.url)
  await guest.getByLabel("Email").fill(who.email)
  await guest.getByLabel("Password").fill(who.password)
  await guest.getByRole("button", { name: "Sign in" }).click()
  await guest.getByRole("heading", { name: "Review", level: 1 }).waitFor()
  const card = guest.getByRole("article", { name: "Review of wants_refund" })
  await card.getByText("Give me back the 9 dollars").waitFor()
  await expectSoundPage(guest)
  for (const name of ["Teach again", "Label these 10", "Save"])
    expect(await guest.getByRole("button", { name }).count()).toBe(0)
  await guest.keyboard.press("y")
  await guest.getByText("1 answer decided in this visit").waitFor()
  await guest.context().close()
})

test(
  "teaching offers what is newest, and above a promised threshold Try shows the promise and what such answers were worth",
  { timeout: 2 * teachMs },
  async () => {
    await openTab("Questions")
    await scene.page.getByLabel("Threshold, %").fill("90")
    await scene.click("Save version 5")
    await scene.page.getByText("Saved as version 5.").waitFor()
    await openTab("Teach")
    await scene.page
      .getByText(
        "Version 4 was taught from the examples of then. Version 5 is the latest now, and version 3 is published.",
      )
      .waitFor()
    expect(await scene.page.getByRole("button", { name: /^Publish/ }).count()).toBe(0)
    await scene.page.getByLabel("Target accuracy, % (optional)").fill("90")
    await scene.click(/^Teach from \d+ examples$/)
    await scene.page
      .getByText("Version 6 was taught. Look at the figures, then publish it: version 3 goes on answering")
      .waitFor({ timeout: teachMs })
    const promise = scene.page.getByText(/^Right at least 90% of the time where it answers/)
    const promised = (await promise.textContent()) ?? ""
    await scene.click("Publish version 6")
    await scene.submit("Publish")
    await scene.page.getByText("Production: version 6").waitFor()
    await openTab("Try")
    await scene.page.getByLabel("Text", { exact: true }).fill(refunds(200))
    await scene.click("Ask the set")
    await scene.page.getByText("Version 6 answered.").waitFor()
    const answer = scene.page.getByRole("listitem", { name: "Answer to wants_refund" })
    await answer.getByText(`Promised: ${promised}`).waitFor()
    await answer
      .getByText(/^Of \d+ labelled rows answered about as surely, none learned from, \d+ were right\.$/)
      .waitFor()
    await answer.getByRole("button", { name: "Copy the answer to wants_refund" }).click()
    await expect.poll(async () => await scene.page.evaluate("navigator.clipboard.readText()")).toBe("yes")
    await scene.expectSound()
  },
)

startTests(scene)

test("between two versions only texts that neither was taught with say who is right", async () => {
  await scene.open("sets")
  await scene.page.getByRole("link", { name: "quick-start", exact: true }).click()
  await openTab("Try")
  await scene.page.getByLabel("Text", { exact: true }).fill("The parcel number 77 came late again.")
  await scene.click("Ask the set")
  await scene.page
    .getByRole("group", { name: /^Right answer to/ })
    .getByRole("button")
    .first()
    .click()
  await scene.page.getByText("Saved as an example: ").waitFor()
  await openTab("Versions")
  await scene.page.getByLabel("From", { exact: true }).selectOption("1")
  await scene.page.getByLabel("To", { exact: true }).selectOption("3")
  await scene.click("Compare the answers")
  const table = scene.page.getByRole("table", { name: "Differences by question" })
  await table.getByText("of 1 labelled text; 10 were taught with and judge nothing").waitFor()
  await expect.poll(async () => await table.textContent()).toMatch(/of 11/)
  await scene.expectSound()
})
