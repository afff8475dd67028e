/** Batches in a browser: from a table to answers and back to a table. */
import { readFileSync } from "node:fs"
import { expect, test } from "vitest"
import type { Scene } from "./console-scene.ts"

export function batchTests(scene: Scene): void {
  const upload = async (name: string, content: string | Buffer): Promise<void> =>
    await scene.page
      .getByLabel("Table", { exact: true })
      .setInputFiles({ name, mimeType: "text/csv", buffer: Buffer.from(content) })
  const downloaded = async (button: string): Promise<string> => {
    const download = scene.page.waitForEvent("download")
    await scene.page.getByRole("button", { name: button, exact: true }).click()
    return readFileSync((await (await download).path()) ?? "", "utf8")
  }

  test("a table is refused with line and column, previewed, priced, asked in the background, shown and joined", async () => {
    await scene.open("playground")
    await scene.pick("Examples", "Support ticket")
    await scene.open("batches")
    await scene.click("New batch")
    await upload("open.csv", 'id,message\n1,fine\n2,"never closed\n3,x')
    await scene.page.getByText("Line 3, column 2: a quote is opened and never closed.").waitFor()
    const preview = scene.page.getByRole("group", { name: "Preview" })
    for (const [mark, separator, encoding] of [
      ["", ";", "latin1"],
      ["", "\t", "utf8"],
      ["\ufeff", ",", "utf8"],
    ] as const) {
      const lines = [`${mark}id${separator}message`, `1${separator}Grüße aus Köln`]
      await upload("table.csv", Buffer.from(lines.join("\n"), encoding))
      await preview.getByRole("columnheader", { name: "id", exact: true }).waitFor()
      await preview.getByRole("cell", { name: "Grüße aus Köln" }).waitFor()
    }
    await upload(
      "tickets.csv",
      "id,message\n1,I want my money back.\n2,Thank you!\n3, \n4,Where is my parcel?",
    )
    // What is chosen comes first.
    await expect
      .poll(async () => await preview.getByRole("columnheader").allTextContents())
      .toEqual(["messageText", "id"])
    await scene.page.getByText("The playground’s questions").click()
    await scene.page.getByText("1 row has no text and will not be asked.").waitFor()
    await expect
      .poll(async () => await scene.page.getByRole("region", { name: "Price" }).textContent())
      .toMatch(/Rows3Tokens, about\d+Price, about\$0\.0\d+/)
    await expect.poll(async () => await scene.problems()).toEqual([])
    await scene.click("Start with 3 rows")
    await scene.page.getByRole("heading", { name: "tickets.csv", level: 1 }).waitFor()
    // The server goes on without the page.
    await scene.page.reload()
    await scene.page.getByText("Done: 3 of 3 rows").waitFor()
    const answers = scene.page.getByRole("table", { name: "Answers" })
    await answers.waitFor()
    await expect.poll(async () => await answers.getByRole("row").count()).toBe(4)
    await expect
      .poll(async () => await scene.page.getByRole("list", { name: /^Answers to / }).count())
      .toBe(3)
    await expect.poll(async () => await scene.problems()).toEqual([])
    const lines = (await downloaded("CSV")).split("\n")
    expect(lines[0]).toMatch(/^id,message,\w+,\w+_probability,.*,error$/)
    expect(lines[3]).toMatch(/^3, ,+$/)
    expect(lines).toHaveLength(5)
    const [line = ""] = (await downloaded("Answers as JSONL")).split("\n")
    expect(JSON.parse(line)).toMatchObject({
      custom_id: "row-1",
      response: { status_code: 200 },
      error: null,
    })
    await answers.getByRole("link", { name: "request" }).first().click()
    await scene.page.getByRole("heading", { name: "Request", level: 1 }).waitFor()
    await scene.open("batches")
    const list = scene.page.getByRole("table", { name: "Batches" })
    await list.getByText("3 of 3").waitFor()
    await expect.poll(async () => await scene.problems()).toEqual([])
    await scene.pick("Actions for tickets.csv", "Rename")
    await scene.dialog().getByLabel("Name").fill("Letters of May")
    await scene.submit("Save")
    await list.getByRole("link", { name: "Letters of May" }).waitFor()
    await scene.page.getByLabel("Name").fill("of june")
    await scene.page.getByText("No batch has this name and state").waitFor()
    await scene.page.getByLabel("Name").fill("of may")
    await scene.page.getByLabel("State").selectOption("Completed")
    await list.getByRole("link", { name: "Letters of May" }).waitFor()
    await scene.expectSound()
    await scene.pick("Actions for Letters of May", "Delete")
    await scene.submit("Delete")
    await scene.page.getByText("No batch has this name and state").waitFor()
    // The list is read again every few seconds, so it may know before the files have gone.
    const files = async (): Promise<string> => {
      const headers = { authorization: `Bearer ${scene.server.key}` }
      return await (await fetch(`${scene.server.url}/v1/files`, { headers })).text()
    }
    await expect.poll(files).not.toContain("tickets.csv")
    expect(scene.complaints).toEqual([])
  })

  test("a batch of a program is listed by the name of its file, with its id", async () => {
    const form = new FormData()
    const body = {
      model: "umpire-decide",
      input: "Where is my parcel?",
      questions: [{ type: "predicate", instructions: "Is it late?" }],
    }
    const line = { custom_id: "one", method: "POST", url: "/v1/decisions", body }
    form.append("purpose", "batch")
    form.append("file", new Blob([JSON.stringify(line)]), "nightly.jsonl")
    const headers = { authorization: `Bearer ${scene.server.key}` }
    const uploaded = await fetch(`${scene.server.url}/v1/files`, { method: "POST", headers, body: form })
    const { id: input_file_id } = (await uploaded.json()) as { id: string }
    const window = { endpoint: "/v1/decisions", completion_window: "24h" }
    const made = await scene.server.post("/v1/batches", { input_file_id, ...window })
    const { id } = (await made.json()) as { id: string }
    await scene.open("batches")
    const row = scene.page.getByRole("row", { name: id })
    await row.getByRole("link", { name: "nightly.jsonl" }).click()
    await scene.page.getByRole("heading", { name: "nightly.jsonl", level: 1 }).waitFor()
  })
}
