/** Quick start in a browser: rows are pasted, labelled with keys and taught, and the page says what changed. */
import { expect, test } from "vitest"
import type { Scene } from "./console-scene.ts"

const teachMs = 120_000

export function startTests(scene: Scene): void {
  const paste = async (text: string): Promise<void> => {
    const rows = scene.page.getByLabel("Rows", { exact: true })
    await rows.focus()
    await scene.page.evaluate(`navigator.clipboard.writeText(${JSON.stringify(text)})`)
    await scene.page.keyboard.press("Control+v")
  }
  const toLabel = () => scene.page.getByRole("region", { name: "Text to label" })
  const labelled = async (words: string): Promise<void> =>
    await scene.page.getByText(words, { exact: true }).waitFor()

  test("pasted lines are labelled with keys, taught, and the page says what that changed and what is promised", async () => {
    await scene.page.goto(`${scene.server.url}/o/${scene.orgId}/playground`)
    await scene.page
      .getByRole("navigation", { name: "Pages" })
      .getByRole("link", { name: "Quick start" })
      .click()
    await scene.page.getByRole("heading", { name: "Quick start", level: 1 }).waitFor()
    const texts = Array.from({ length: 10 }, (_, n) =>
      n % 2 === 0
        ? `The parcel number ${n}, as so often, came late.`
        : `Thank you for tent ${n}, it is great.`,
    )
    const begunMs = performance.now()
    await paste(texts.join("\n"))
    await scene.page.getByText("10 rows with a text.").waitFor()
    await scene.page.getByLabel("Question", { exact: true }).fill("Is it about a late parcel?")
    await scene.page.keyboard.press("Enter")
    await labelled("0 of 10 labelled")
    // The first is labelled wrongly, which is undone; the second is skipped and undone too.
    await scene.page.keyboard.press("n")
    await toLabel().getByText("Thank you for tent 1").waitFor()
    await scene.page.keyboard.press("u")
    await toLabel().getByText("The parcel number 0").waitFor()
    await labelled("0 of 10 labelled")
    await scene.expectSound()
    for (const [at, text] of texts.entries()) {
      await toLabel().getByText(text).waitFor()
      await scene.page.keyboard.press(text.includes("parcel") ? "y" : "n")
      await labelled(`${at + 1} of 10 labelled`)
    }
    await scene.page.getByText("Every row is labelled or skipped.").waitFor()
    await scene.click("Teach from 10 labels")
    await scene.page.getByText(/^Version 2 was taught/).waitFor({ timeout: teachMs })
    console.log(
      `Quick start: ${((performance.now() - begunMs) / 1000).toFixed(1)} s from paste to taught set`,
    )
    await scene.page
      .getByText(/^Of 10 rows, each judged without having been learned from, \d+ were right/)
      .waitFor()
    // Ten rows cannot prove nine of ten, and the page says how many can.
    await scene.page.getByText(/Cannot promise 90%.* at least 29/).waitFor()
    await scene.page.getByText(/^\d+ answers? of 10 changed\./).waitFor({ timeout: teachMs })
    await scene.expectSound()
  })

  test("more labels of the same question go to the same set; a table proposes its question", async () => {
    await scene.click("Back to the rows")
    await scene.page.getByText("All rows with their labels").click()
    await scene.page.getByRole("table", { name: "Rows" }).getByRole("combobox").first().selectOption("no")
    await scene.click("Teach from 10 labels")
    await scene.page.getByText(/^Version 3 was taught/).waitFor({ timeout: teachMs })
    await scene.click("Start with other rows")
    const teams = ["parcels", "billing", "parcels", "billing", "", ""]
    await paste(["text;team", ...teams.map((team, n) => `"A message, number ${n}";${team}`)].join("\n"))
    await scene.expectValue("Question", "What is the team of this text?")
    await scene.expectValue("Answers to pick from, one a line", "billing\nparcels")
    await labelled("4 of 6 labelled")
    await scene.page.getByLabel("Answers to pick from, one a line").fill("billing\nparcels\njobs")
    await scene.page.getByRole("heading", { name: "3. Labels" }).click()
    await scene.page.keyboard.press("3")
    await labelled("5 of 6 labelled")
    await scene.expectSound()
    // What is held stays while another page is looked at.
    await scene.page.getByRole("link", { name: "Question sets", exact: true }).click()
    await scene.page.getByRole("link", { name: "quick-start", exact: true }).waitFor()
    await scene.page.getByRole("link", { name: "Quick start", exact: true }).click()
    await labelled("5 of 6 labelled")
    await scene.page.reload()
    await labelled("5 of 6 labelled")
  })

  test("who has no rows takes the sample; what cannot be read is said", async () => {
    await scene.click("Start over")
    await scene.page.getByLabel("File with rows").setInputFiles({
      name: "rows.xlsx",
      mimeType: "application/octet-stream",
      buffer: Buffer.from([0x50, 0x4b, 0x03, 0x04, 0]),
    })
    await scene.page.getByText("Save the sheet as CSV").waitFor()
    await scene.page.getByLabel("File with rows").setInputFiles({
      name: "latin.csv",
      mimeType: "text/csv",
      buffer: Buffer.from("text;team\nGrüße;a\nTschüß;b\nSüß;a\nHallo;b\n", "latin1"),
    })
    await toLabel().waitFor({ state: "detached" })
    await scene.page.getByRole("cell", { name: "Grüße" }).first().waitFor()
    await scene.click("Start over")
    await scene.click("Use sample rows")
    await labelled("40 of 44 labelled")
    await toLabel().getByText("The refund that you promised").waitFor()
    await scene.page.keyboard.press("y")
    await labelled("41 of 44 labelled")
    expect(scene.complaints).toEqual([])
  })
}
