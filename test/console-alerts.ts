/** Alerts and kept content in a browser: rules, webhooks with their deliveries, what is kept and what is redacted. */
import { readFileSync } from "node:fs"
import { expect, test } from "vitest"
import type { Scene } from "./console-scene.ts"

export function alertTests(scene: Scene): void {
  test("a guardrail is made of a ready-made set, edited, disabled and deleted", async () => {
    await scene.open("guardrails")
    await scene.click("Create guardrail")
    const dialog = scene.dialog()
    await dialog.getByLabel("Name").fill("Injections")
    await dialog.getByLabel("Question set").selectOption("prompt-injection")
    await dialog.getByText("do not rely on it alone").waitFor()
    await dialog.getByLabel("When", { exact: true }).selectOption("Before the model reads")
    await scene.expectSound()
    await scene.submit("Create guardrail")
    const row = scene.page.getByRole("row", { name: /^Injections/ })
    await row.getByText("Before the model reads").waitFor()
    await scene.pick("Actions for Injections", "Edit")
    await dialog.getByLabel("Then", { exact: true }).selectOption("Flag in the record")
    await scene.submit("Save")
    await row.getByText("Flag in the record").waitFor()
    await scene.pick("Actions for Injections", "Disable")
    await row.getByText("Disabled").waitFor()
    await scene.pick("Actions for Injections", "Delete")
    await scene.submit("Delete guardrail")
    await row.waitFor({ state: "detached" })
  })

  test("a rule is said in a sentence while it is made, edited, disabled and deleted", async () => {
    await scene.open("alerts")
    await scene.click("Create rule")
    const dialog = scene.dialog()
    await dialog.getByLabel("What to watch").selectOption("Low balance")
    await dialog.getByLabel("Threshold, $").fill("0")
    await dialog.getByText("From $0.01 to $10,000,000.00.").waitFor()
    await dialog.getByLabel("Threshold, $").fill("9000000")
    await dialog.getByText("Fires when the balance is below $9,000,000.00.").waitFor()
    await dialog.getByLabel("Name").fill("Credit")
    await scene.expectSound()
    await scene.submit("Create rule")
    // An alert that it raises has its name too.
    const rules = scene.page.getByRole("table", { name: "Alert rules" })
    const row = rules.getByRole("row", { name: /^Credit/ })
    await row.getByText("Fires when the balance is below $9,000,000.00.").waitFor()
    const link = scene.page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: "Alerts" })
    await link.getByText(/^\d+ firing$/).waitFor({ state: "attached" })
    await expect.poll(async () => await scene.problems()).toEqual([])
    await scene.pick("Actions for Credit", "Edit")
    await dialog.getByLabel("Threshold, $").fill("8000000")
    await scene.submit("Save")
    await row.getByText("below $8,000,000.00").waitFor()
    await scene.pick("Actions for Credit", "Disable")
    await row.getByText("Disabled").waitFor()
    await scene.pick("Actions for Credit", "Delete")
    await scene.submit("Delete rule")
    await row.waitFor({ state: "detached" })
  })

  test("a webhook's secret is shown once, its address must be public, and it is rotated and deleted", async () => {
    await scene.open("alerts")
    await scene.click("Add webhook")
    const dialog = scene.dialog()
    await dialog.getByLabel("URL").fill("https://127.0.0.1/hook")
    await scene.submit("Add webhook")
    await dialog.getByRole("alert").waitFor()
    await dialog.getByLabel("URL").fill("https://hooks.slack.com/services/T0/B0/x")
    await scene.expectValue("What it gets", "slack")
    await dialog.getByText("Who knows it can post there.").waitFor()
    await dialog.getByLabel("URL").fill("https://hooks.example.com/umpire")
    await dialog.getByLabel("What it gets").selectOption("Message in Microsoft Teams")
    await dialog.getByLabel("Description (optional)").fill("On call")
    await scene.submit("Add webhook")
    await expect
      .poll(async () => await dialog.getByLabel("Signing secret", { exact: true }).textContent())
      .toMatch(/^whsec_/)
    await scene.expectSound()
    await scene.submit("I have copied it")
    await scene.pick("Actions for On call", "Rotate secret")
    await scene.submit("Rotate")
    await scene.submit("I have copied it")
    await scene.page.getByText(/The old secret signs too until/).waitFor()
    await scene.pick("Actions for On call", "Send a test")
    const log = scene.page.getByRole("table", { name: "Deliveries" })
    await log.getByText("webhook.test").waitFor()
    await log.getByRole("button", { name: /^Show/ }).click()
    await expect
      .poll(async () => await dialog.getByLabel("Body").textContent())
      .toContain('"type": "AdaptiveCard"')
    await scene.submit("Close")
    await expect.poll(async () => await scene.problems()).toEqual([])
    const attempts = log.getByRole("row").nth(1).getByRole("cell").nth(2)
    // Its text has the name of the column too, which a phone shows.
    const attempted = async (): Promise<number> =>
      Number(((await attempts.textContent()) ?? "").replaceAll(/\D/g, ""))
    await expect.poll(attempted).toBeGreaterThan(0)
    // More than one where a busy machine took the minute after which it is tried again.
    const before = await attempted()
    await log.getByRole("button", { name: /^Send again/ }).click()
    await expect.poll(attempted).toBeGreaterThan(before)
    await scene.click("Close the deliveries")
    await scene.pick("Actions for On call", "Delete")
    await scene.submit("Delete webhook")
    await scene.page.getByText("No webhooks yet").waitFor()
    expect(scene.complaints).toEqual([])
  })

  test("kept content is opened from its record, in the playground and the chat, exported and deleted", async () => {
    const { page, server, orgId } = scene
    const path = `/v1/organizations/${orgId}`
    const keep = async (level: string): Promise<Response> =>
      await fetch(`${server.url}${path}/content_settings`, {
        method: "PUT",
        headers: { authorization: `Bearer ${server.key}`, "content-type": "application/json" },
        body: JSON.stringify({ keep: level }),
      })
    await keep("evidence_and_answers")
    const question = { type: "predicate", name: "late", instructions: "Is it late?" }
    const decision = { model: "umpire-decide", input: "It came last week.", questions: [question] }
    const messages = [{ role: "user", content: "Say hello." }]
    const chat = { model: "smollm2-135m-instruct", messages, max_tokens: 4 }
    const show = async (answer: Response): Promise<void> => {
      const id = answer.headers.get("x-umpire-sequence")
      // Content is stored a while after the record is there.
      const state = async (): Promise<unknown> => {
        const reply = await fetch(`${server.url}${path}/sequences/${id}`, {
          headers: { authorization: `Bearer ${server.key}` },
        })
        return ((await reply.json()) as { data?: { content: string } }).data?.content
      }
      await expect.poll(state).toBe("evidence_and_answers")
      await page.goto(`${server.url}/o/${orgId}/requests/${id}`)
      await scene.click("Show content")
    }
    await show(await server.post("/v1/chat/completions", chat))
    await page.getByRole("list", { name: "Input" }).getByText("Say hello.").waitFor()
    await expect.poll(async () => await scene.problems()).toEqual([])
    await scene.click("Open in chat")
    await page.getByRole("heading", { name: "Chat", level: 1 }).waitFor()
    await scene.expectValue("Message", "Say hello.")
    const decided = await server.post("/v1/decisions", decision)
    await show(decided)
    // Opened before its content was stored, the page looks again.
    const record = `**${path}/sequences/${decided.headers.get("x-umpire-sequence")}`
    let isStored = false
    await page.route(record, async (route) => {
      const response = await route.fetch({ timeout: 0 })
      const { data } = (await response.json()) as { data: object }
      const early = { ...data, content: "none", timestamp: Date.now() }
      await route.fulfill(isStored ? { response } : { response, json: { data: early } })
    })
    await page.reload()
    await page.getByText("Nothing is stored yet.").waitFor()
    await expect.poll(async () => await scene.problems()).toEqual([])
    isStored = true
    await scene.click("Show content")
    await page.unroute(record)
    await scene.click("Open in playground")
    await page.getByRole("heading", { name: "Playground", level: 1 }).waitFor()
    await scene.expectValue("Text to judge", "It came last week.")
    await scene.open("requests")
    await scene.click("Search texts")
    await scene.dialog().getByLabel("Text").fill("CAME last")
    await scene.submit("Search")
    const found = scene.dialog().getByRole("list", { name: "Found requests" })
    await found.getByText("It came last week.").waitFor()
    await scene.expectSound()
    await scene.dialog().getByLabel("Text").fill("unheard of")
    await scene.submit("Search")
    await scene.dialog().getByText("No kept request has “unheard of”.").waitFor()
    await scene.dialog().getByLabel("Text").fill("say hello")
    await scene.submit("Search")
    await found.getByRole("link").click()
    await page.getByRole("heading", { name: "Request", level: 1 }).waitFor()
    await scene.open("settings")
    const download = page.waitForEvent("download")
    await page.getByRole("link", { name: "Export as JSON lines" }).click()
    const file = await (await download).path()
    expect(readFileSync(file, "utf8")).toContain("It came last week.")
    await show(decided)
    await scene.click("Delete content")
    await scene.submit("Delete content")
    await page.getByText("The content of this request was deleted.").waitFor()
    await keep("nothing")
    expect(scene.complaints).toEqual([])
  })

  test("what is kept is chosen for the organization and for a key, and patterns are tried out", async () => {
    await scene.open("settings")
    const form = scene.page.getByRole("form", { name: "Kept content" })
    await form.getByLabel(/^Answers only/).check()
    await form.getByLabel("Delete after (days)").fill("366")
    await form.getByText("From 1 to 365.").waitFor()
    await form.getByLabel("Delete after (days)").fill("10")
    await scene.pick("Add pattern", "email")
    await form.getByLabel("Try it out").fill("Write to jo@example.com.")
    await form.getByLabel("As it would be stored").getByText("Write to [email].").waitFor()
    await form.getByLabel("Pattern", { exact: true }).fill("(?=x)")
    await form.getByRole("alert").waitFor()
    await form.getByLabel("Pattern", { exact: true }).fill("[a-z]+@[a-z.]+")
    await expect.poll(async () => await scene.problems()).toEqual([])
    await form.getByRole("button", { name: "Save" }).click()
    await form.getByText("Saved. It holds from the next request on.").waitFor()

    await scene.open("keys")
    await scene.page
      .getByRole("button", { name: /^Actions for / })
      .first()
      .click()
    await scene.page.getByRole("menuitem", { name: "Kept content" }).click()
    const dialog = scene.dialog()
    await dialog.getByText("Answers only of every request for 10 days.").waitFor()
    await dialog.getByLabel("Its own").check()
    await dialog.getByLabel("Delete after (days)").fill("11")
    await dialog.getByText("From 1 to 10.").waitFor()
    await dialog.getByLabel("Delete after (days)").fill("5")
    await dialog.getByLabel("Share of requests, %").fill("50")
    await scene.expectSound()
    await scene.submit("Save")
    await dialog.waitFor({ state: "detached" })

    await scene.open("settings")
    await form.getByLabel(/^Nothing/).check()
    await form.getByRole("button", { name: "Save" }).click()
    await form.getByText("Saved.").waitFor()
    expect(scene.complaints).toEqual([])
  })
}
