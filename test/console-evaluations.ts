/** Evaluations in a browser: run by the server, shown again, and compared. */
import { readFileSync } from "node:fs"
import { expect, test } from "vitest"
import type { Scene } from "./console-scene.ts"

const labels = ["no", "Yes", "no", "yes", "no", "yes"]
const texts = ["Thank you very much", "I want my money back"]
const rows = Array.from({ length: 12 }, (_, at) => `${texts[at % 2]} ${at},${labels[at % 6]}`)
/** More than the server answers before it is told to stop. */
const manyRows = Array.from({ length: 5_000 }, (_, at) => `Text ${at},${at % 2 ? "yes" : "no"}`)

export function evaluationTests(scene: Scene): void {
  const upload = async (name: string, lines: readonly string[]): Promise<void> =>
    await scene.page.getByLabel("Labelled file").setInputFiles({
      name,
      mimeType: "text/plain",
      buffer: Buffer.from(["text,label", ...lines].join("\n")),
    })
  const ask = async (question: string): Promise<void> =>
    await scene.page.getByLabel("Question to ask of every row").fill(question)
  const makeCascade = async (name: string, cascade: object): Promise<void> => {
    const made = await fetch(`${scene.server.url}/v1/organizations/${scene.orgId}/models`, {
      method: "POST",
      headers: { authorization: `Bearer ${scene.server.key}`, "content-type": "application/json" },
      body: JSON.stringify({ name, cascade }),
    })
    expect(made.status).toBe(200)
  }
  const goTo = async (place: string): Promise<void> => {
    const places = scene.page.getByRole("navigation", { name: "Pages" })
    await places.getByRole("link", { name: place, exact: true }).click()
    await scene.page.getByRole("heading", { name: place, level: 1 }).waitFor()
  }

  test("an evaluation is run by the server, survives leaving and reloading, and shows how good the answers are", async () => {
    await scene.open("evaluate")
    await upload("refunds.csv", rows)
    await ask("Does the customer want a refund?")
    // "Yes" and "yes" are one label after asking.
    await scene.page.getByText("“yes” and “Yes” differ in case only. Are they one label?").waitFor()
    await expect
      .poll(async () => await scene.page.getByRole("button", { name: "Evaluate 12 rows" }).isDisabled())
      .toBe(true)
    await scene.click("One label")
    await scene.page.getByText("“yes” and “Yes” differ in case only. They are one label.").waitFor()
    await scene.click("Evaluate 12 rows")
    await scene.page.getByRole("heading", { name: "refunds.csv", level: 1 }).waitFor()
    const address = scene.page.url()
    // What was prepared stays, and what was started goes on.
    await goTo("Models")
    await goTo("Evaluate")
    await scene.page.getByText("refunds.csv: 12 rows").waitFor()
    await scene.expectValue("Question to ask of every row", "Does the customer want a refund?")
    await scene.page.goto(address)
    await scene.page.getByText("Done: 12 of 12 rows").waitFor()
    const results = scene.page.getByRole("region", { name: "Results" })
    await results.getByText("Accuracy").first().waitFor()
    await results.getByText("ECE: by how much the stated confidence misses").waitFor()
    await scene.page
      .getByRole("note", { name: "Cost and time" })
      .getByText(/^It cost \$.* a row\.$/)
      .waitFor()
    await expect
      .poll(async () => await results.getByRole("region", { name: "Confusion" }).getByRole("row").count())
      .toBe(3)
    await results.getByLabel("Say yes from").fill("0.9")
    await expect
      .poll(async () => await results.getByRole("region", { name: "Threshold" }).textContent())
      .toContain("Precision")
    await expect.poll(async () => await scene.problems()).toEqual([])
    const download = scene.page.waitForEvent("download")
    await scene.click("Export all rows")
    expect(readFileSync((await (await download).path()) ?? "", "utf8").split("\n")).toHaveLength(13)
  })

  test("the same rows are asked in another way, and both stand side by side with their differences", async () => {
    await scene.open("evaluate")
    const list = scene.page.getByRole("table", { name: "Evaluations" })
    await list.getByRole("link", { name: "refunds.csv" }).click()
    await scene.click("Evaluate again")
    await scene.expectValue("Question to ask of every row", "Does the customer want a refund?")
    await ask("Is the customer grateful?")
    await scene.click("Evaluate 12 rows")
    await scene.page.getByRole("heading", { name: "refunds.csv", level: 1 }).waitFor()
    await scene.page.getByText("Is the customer grateful?").waitFor()
    await scene.page.getByText("Done: 12 of 12 rows").waitFor()
    await scene.open("evaluate")
    const boxes = list.getByRole("checkbox")
    await boxes.nth(1).waitFor()
    await boxes.nth(0).check()
    await boxes.nth(1).check()
    await scene.click("Compare two")
    const figures = scene.page.getByRole("table", { name: "Figures" })
    await expect
      .poll(async () => await figures.getByRole("row", { name: /^Accuracy/ }).textContent())
      .toMatch(/%.*%.*(?:chance|same)/)
    await scene.page.getByText("Over the 12 rows that both answered.").waitFor()
    await scene.page.getByText(/^Answers that differ \(\d+ of 12\)$/).waitFor()
    await figures.getByText("ECE: by how much the stated confidence misses").waitFor()
    await scene.expectSound()
  })

  test("an evaluation of a cascade is compared with its models: accuracy by cost and by time, drawn and in a table", async () => {
    await makeCascade("careful", {
      models: ["umpire-decide", "smollm2-135m-instruct"],
      thresholds: { predicate: 0.7 },
    })
    await scene.open("evaluate")
    await upload("cascade.csv", rows.slice(0, 4))
    await scene.click("One label")
    await ask("Does the customer want a refund?")
    await scene.page.getByLabel("Model", { exact: true }).selectOption("careful")
    await scene.click("Evaluate 4 rows")
    await scene.page.getByText("Done: 4 of 4 rows").waitFor()
    await scene.click("Evaluate 2 models of the cascade")
    const table = scene.page.getByRole("table", { name: "The cascade and its models" })
    await table.getByRole("row").nth(3).waitFor()
    expect(await table.getByRole("row").allTextContents()).toEqual([
      expect.stringContaining("Accuracy"),
      ...["careful", "umpire-decide", "smollm2-135m-instruct"].map((name) =>
        expect.stringMatching(new RegExp(`${name}.*4.*%.*\\$.*s`)),
      ),
    ])
    await scene.page
      .getByRole("img", {
        name: /^Accuracy by cost: careful \d.*%.*; umpire-decide .*; smollm2-135m-instruct /,
      })
      .waitFor()
    expect(await scene.problems()).toEqual([])
    expect(scene.complaints).toEqual([])
  })

  test("rows that all failed say why and what to do, of a model of a cascade and of the evaluation itself", async () => {
    // Its first model answers every row; the organization has no access to the second.
    await makeCascade("hopeful", {
      models: ["umpire-decide", "umpire-reserved"],
      thresholds: { predicate: 0.5 },
    })
    await scene.open("evaluate")
    await upload("hopeful.csv", rows.slice(0, 4))
    await scene.click("One label")
    await ask("Does the customer want a refund?")
    await scene.page.getByLabel("Model", { exact: true }).selectOption("hopeful")
    await scene.click("Evaluate 4 rows")
    await scene.page.getByText("Done: 4 of 4 rows").waitFor()
    await scene.click("Evaluate 2 models of the cascade")
    const told = scene.page.getByRole("alert").filter({ hasText: "has no result to compare" })
    await told
      .getByText(/4 rows: .*no access to the model umpire-reserved.*\(model_access_required\)/)
      .waitFor()
    // The other one is shown, and this one can be asked again.
    await scene.page
      .getByRole("table", { name: "The cascade and its models" })
      .getByRole("row")
      .nth(2)
      .waitFor()
    await scene.page.getByRole("button", { name: "Evaluate 1 model of the cascade" }).waitFor()
    expect(await scene.problems()).toEqual([])
    await told.getByRole("link", { name: "umpire-reserved" }).click()
    await scene.page.getByText("Done: 4 of 4 rows, 4 failed").waitFor()
    await scene.page.getByText(/^No row was answered.*evaluate again/).waitFor()
    await scene.page.getByText(/^4 rows: .*no access to the model umpire-reserved/).waitFor()
    await scene.click("Evaluate again")
    await scene.expectValue("Question to ask of every row", "Does the customer want a refund?")
    expect(scene.complaints).toEqual([])
  })

  test("an evaluation is cancelled on the server, and a file that cannot be read says why", async () => {
    await scene.open("evaluate")
    await upload("many.csv", manyRows)
    await ask("Is the number odd?")
    await scene.click("Evaluate 5,000 rows")
    await scene.page.getByRole("heading", { name: "many.csv", level: 1 }).waitFor()
    await scene.click("Cancel")
    // Before its rows were counted it has none.
    await scene.page
      .getByRole("status")
      .filter({ hasText: /^Cancelled(?:: [\d,]+ of 5,000 rows|$)/ })
      .waitFor()
    await scene.open("evaluate")
    await scene.page
      .getByLabel("Labelled file")
      .setInputFiles({ name: "bad.jsonl", mimeType: "text/plain", buffer: Buffer.from("{") })
    await scene.page.getByText("Line 1, character 2: this is not JSON.").waitFor()
  })

  test("a table of semicolons in Latin-1 is read, its options are described, and the next evaluation has them", async () => {
    await scene.open("evaluate")
    const table = [
      "text;team",
      "Grüße, wo ist mein Paket?;parcels",
      "Two payments for one chair;billing",
      ";",
    ]
    const buffer = Buffer.from(table.join("\n"), "latin1")
    await scene.page
      .getByLabel("Labelled file")
      .setInputFiles({ name: "teams.csv", mimeType: "text/csv", buffer })
    await scene.page.getByText("teams.csv: 2 rows").waitFor()
    await scene.page.getByRole("cell", { name: "Grüße, wo ist mein Paket?" }).waitFor()
    await ask("Which team should answer?")
    await scene.page.getByText("2 options: billing, parcels · describe them").click()
    await scene.page.getByLabel("What “parcels” means (optional)").fill("late, lost or damaged parcels")
    await scene.expectSound()
    await scene.click("Evaluate 2 rows")
    await scene.page.getByText("Done: 2 of 2 rows").waitFor()
    await scene.click("Evaluate again")
    await scene.page.getByText("describe them").click()
    await scene.expectValue("What “parcels” means (optional)", "late, lost or damaged parcels")
  })

  test("the threshold shows the precision and the recall that one computes by hand", async () => {
    // What the model says is fixed here: half of these rows are yes, and it is sure in the wrong order.
    const said = [0.95, 0.8, 0.6, 0.4, 0.3, 0.1]
    await scene.page.route("**/v1/files/*/content", async (route) => {
      const response = await route.fetch({ timeout: 0 })
      const body = (await response.text()).replaceAll(
        /^(\{"id":[^\n]*"custom_id":"row-(\d)"[^\n]*"probability":)[^,}]+/gm,
        (_, before: string, row: string) => `${before}${said[Number(row) - 1]}`,
      )
      await route.fulfill({ response, body })
    })
    await scene.open("evaluate")
    await upload(
      "fixed.csv",
      said.map((probability, at) => `${probability},${at % 2 ? "no" : "yes"}`),
    )
    await ask("Is it?")
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
      await expect
        .poll(async () => [threshold, await panel.locator("dl").textContent()])
        .toEqual([threshold, figures])
    }
    await scene.page.unroute("**/v1/files/*/content")
    await scene.pick("Actions for fixed.csv", "Delete")
    await scene.submit("Delete")
    await scene.page.getByRole("heading", { name: "Evaluate", level: 1 }).waitFor()
    const list = scene.page.getByRole("region", { name: "Evaluations" })
    await list.getByRole("link", { name: "many.csv" }).waitFor()
    await list.getByLabel("State").selectOption("Cancelled")
    await list.getByRole("link", { name: "many.csv" }).waitFor()
    await list.getByLabel("Name").fill("fixed")
    await list.getByText("No evaluation has this name and state").waitFor()
    await scene.expectSound()
  })
}
