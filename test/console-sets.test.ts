/** Question sets in a browser: saved from the playground, taught from a file, published, asked, reviewed, taught again. */
import OpenAI from "openai"
import { expect, test } from "vitest"
import { useScene } from "./console-scene.ts"

const scene = useScene()

/** On a busy machine a text takes about a second. */
const teachMs = 900_000

const refunds = (n: number): string => `Please refund the ${20 + n} dollars that you charged me twice.`
const weather = (n: number): string => `It will be sunny with a light wind in valley number ${n} today.`
const rows = Array.from({ length: 120 }, (_, n) => (n % 2 === 0 ? `${refunds(n)},yes` : `${weather(n)},no`))

const openTab = async (name: string | RegExp): Promise<void> =>
  await scene.page.getByRole("navigation", { name: "Parts of the set" }).getByRole("link", { name }).click()

const upload = async (text: string): Promise<void> =>
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
  await expect.poll(async () => await scene.problems()).toEqual([])
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
  await upload("input,wants_refund\nA row that is deleted again.,no\n")
  await uploadSays("1 added")
  await scene.page.getByRole("button", { name: "Actions for A row that is deleted again." }).click()
  await scene.page.getByRole("menuitem", { name: "Delete" }).click()
  await scene.submit("Delete example")
  const deleted = scene.page.getByRole("cell", { name: "A row that is deleted again.", exact: true })
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
  await expect.poll(async () => await scene.problems()).toEqual([])
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
  await expect.poll(async () => await scene.problems()).toEqual([])
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
  await scene.click("Save as examples")
  await scene.dialog().getByLabel("Question set").selectOption("refunds")
  await scene.dialog().getByLabel("Question that the labels answer").selectOption("wants_refund")
  await expect.poll(async () => await scene.problems()).toEqual([])
  await scene.submitTwice("Save 3 examples")
  await scene.page.getByText("2 examples saved, 1 known already. Teach the set to learn from them.").waitFor()
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

test("teaching shows its progress and what it found", { timeout: teachMs }, async () => {
  await openTab("Teach")
  await scene.click("Teach from 123 examples")
  await scene.page
    .getByText("Version 3 was taught. Look at the figures, then publish it.")
    .waitFor({ timeout: teachMs })
  const panel = scene.page.getByRole("region", { name: "wants_refund" })
  await panel.getByText("Taught", { exact: true }).waitFor()
  await panel.getByText("Accuracy (higher is better)").waitFor()
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
  expect(data.answers).toHaveLength(1)
  expect(response.headers.get("x-umpire-question-set")).toBe("refunds@3")
  // The threshold is 100 %, which no answer reaches.
  expect(response.headers.get("x-umpire-abstained")).toBe("wants_refund")
})

test("a shadow answers beside the published version until it is stopped, and the report says how it differs", async () => {
  await openTab("Shadow")
  await scene.page.getByLabel("Version", { exact: true }).selectOption("1")
  await scene.page.getByLabel("Share of requests, %").fill("100")
  await scene.click("Start shadow")
  await scene.page.getByText("Version 1 answers 100.0% of the requests").waitFor()
  await scene.server.post("/v1/decisions", { model: "set:refunds", input: refunds(1), questions: [] })
  const report = scene.page.getByRole("table", { name: "How the answers differ" })
  await report.getByText("Version 1 beside 3").waitFor()
  await expect.poll(async () => await scene.problems()).toEqual([])
  await scene.click("Stop")
  await scene.page.getByRole("button", { name: "Start shadow" }).waitFor()
})

const plural = (answers: number): string => `${answers} answer${answers === 1 ? "" : "s"}`

/** As many as teaching again pays from. */
const labelsWanted = 20

test(
  "a doubtful answer goes through the review queue and teaches the set",
  { timeout: teachMs },
  async () => {
    await openTab("Review")
    // Nothing is kept unless an owner chooses it: the page says so and offers it.
    await scene.page.getByText("People can review doubtful answers here").waitFor()
    await expect.poll(async () => await scene.problems()).toEqual([])
    await scene.click("Keep evidence and answers for 30 days")
    await scene.page.getByText("Nothing waits for review").waitFor()
    const doubtful = Array.from(
      { length: labelsWanted },
      (_, n) => `${n % 2 === 0 ? refunds(n) : weather(n)} Thanks.`,
    )
    for (const input of doubtful)
      expect(
        (await scene.server.post("/v1/decisions", { model: "set:refunds", input, questions: [] })).status,
      ).toBe(200)

    const card = scene.page.getByRole("article", { name: "Review of wants_refund" })
    const evidence = card.getByRole("region", { name: "Evidence" })
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
    for (let done = 1; done <= labelsWanted; done++) {
      const text = (await evidence.textContent()) ?? ""
      await scene.page.keyboard.press(text.includes("refund") ? "y" : "n")
      await scene.page.getByText(`${plural(done)} decided in this visit`).waitFor()
    }
    await scene.page.getByText("Nothing waits for review").waitFor()

    await scene.page.getByText(`${labelsWanted} labels since the set was last taught`).waitFor()
    await scene.click("Teach again")
    await scene.page
      .getByText("Version 4 was taught. Look at the figures, then publish it.")
      .waitFor({ timeout: teachMs })
    // The labels are examples of the set now.
    await openTab("Examples")
    await scene.page
      .getByRole("cell", { name: doubtful[0] ?? "", exact: true })
      .first()
      .waitFor()
    expect(scene.complaints).toEqual([])
  },
)

test("monitoring shows how the answers are distributed", async () => {
  await openTab("Monitoring")
  const panel = scene.page.getByRole("region", { name: "wants_refund" })
  await panel.getByRole("img", { name: /^Abstained: 100.0%/ }).waitFor()
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
