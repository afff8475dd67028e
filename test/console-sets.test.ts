/** Question sets in a browser: saved from the playground, taught from a file, published, and asked by a client. */
import OpenAI from "openai"
import { afterAll, beforeAll, expect, test } from "vitest"
import { type Scene, openScene } from "./console-scene.ts"

// Filled before any test runs.
const scene = {} as Scene

beforeAll(async () => void Object.assign(scene, await openScene()))
afterAll(async () => await scene.close())

/** On a busy machine a text takes about a second. */
const teachMs = 240_000

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
  expect(await scene.problems()).toEqual([])
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

test("a change of the questions becomes a version, and the difference is shown", async () => {
  await scene.page.getByLabel("Threshold, %").fill("100")
  // What is being written stays while another tab is looked at.
  await openTab("Versions")
  await openTab(/^Questions/)
  await scene.page.getByPlaceholder("Why (optional)").fill("as sure as can be")
  await scene.click("Save version 2")
  await scene.page.getByText("Saved as version 2.").waitFor()
  await openTab("Versions")
  await scene.page.getByRole("cell", { name: "as sure as can be" }).waitFor()
  await scene.page.getByLabel("What changed").getByText("questions.wants_refund.threshold").waitFor()
  expect(await scene.problems()).toEqual([])
})

test("a file of labelled rows is uploaded, and what is wrong with it is named", async () => {
  await openTab("Examples")
  await upload(["input,wants_refund", ...rows].join("\n"))
  await uploadSays("120 added")
  await upload(["input,wants_refund", rows[0], `${refunds(2)},no`, "Hello,maybe"].join("\n"))
  await uploadSays("0 added, 1 duplicate, 1 contradicting, 1 refused")
  await scene.page.getByText('Row 3: "maybe" is no answer to wants_refund').waitFor()
  await scene.page.getByText("Row 2: wants_refund is true, the file says false").waitFor()
  expect(await scene.problems()).toEqual([])
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

test("teaching shows its progress and what it found", { timeout: teachMs }, async () => {
  await openTab("Teach")
  await scene.click("Teach from 120 examples")
  await scene.page
    .getByText("Version 3 was taught. Look at the figures, then publish it.")
    .waitFor({ timeout: teachMs })
  const panel = scene.page.getByRole("region", { name: "wants_refund" })
  await panel.getByText("Taught", { exact: true }).waitFor()
  await panel.getByText("Accuracy (higher is better)").waitFor()
  expect(await panel.textContent()).toMatch(/always giving the most frequent label/)
  expect(await scene.problems()).toEqual([])
  await openTab("Promise")
  await scene.page.getByRole("img", { name: /^Risk against coverage/ }).waitFor()
  expect(await scene.problems()).toEqual([])
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

test("the list, the command palette and the snippets know the set", async () => {
  await scene.open("sets")
  const row = scene.page.getByRole("row", { name: /refunds/ })
  expect(await row.textContent()).toMatch(/Letters to support.*umpire-decide.*Version 3.*Version 3.*120/)
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
  expect(await scene.page.getByLabel("Code", { exact: true }).textContent()).toContain("set:refunds")
  await scene.page.getByLabel("Command line").check()
  expect(await scene.page.getByLabel("Code", { exact: true }).textContent()).toContain(
    "umpire sets pull refunds",
  )
})
