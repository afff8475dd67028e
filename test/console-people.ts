/** Keys, members, organizations and models in a browser: every write, and refusals in words. */
import { expect, test } from "vitest"
import { type Scene, holdWrites } from "./console-scene.ts"
import { makeOrganization } from "./console.ts"

export function peopleTests(scene: Scene): void {
  /** What the API answers to a key. */
  const status = async (key: string): Promise<number> =>
    (await fetch(`${scene.server.url}/v1/models`, { headers: { authorization: `Bearer ${key}` } })).status

  test("a key is made, changed, rotated and ended; each secret is shown once and works", async () => {
    await scene.open("keys")
    await scene.click("Create key")
    await scene.page.getByLabel("Name").fill("robot")
    await scene.submit("Create key")
    const secret = (await scene.page.getByLabel("API key", { exact: true }).textContent()) ?? ""
    expect(secret).toMatch(/^ump_/)
    await expect.poll(async () => await scene.problems()).toEqual([])
    await scene.click("Copy API key")
    await expect.poll(async () => await scene.page.evaluate("navigator.clipboard.readText()")).toBe(secret)
    await scene.click("I have copied it")
    expect(await scene.page.content()).not.toContain(secret)
    await scene.page.reload()
    await scene.page.getByText("robot", { exact: true }).waitFor()
    expect(await scene.page.content()).not.toContain(secret)
    expect(await status(secret)).toBe(200)

    await scene.pick("Actions for robot", "Edit")
    await scene.page.getByLabel("Name").fill("android")
    await scene.page.getByLabel("api-read").check()
    await scene.submit("Save")
    await scene.page.getByText("android", { exact: true }).waitFor()
    await scene.pick("Actions for android", "Rotate secret")
    await scene.page.getByLabel("The old secret").selectOption("Works for 1 more hour")
    await scene.submit("Rotate")
    const second = (await scene.page.getByLabel("API key", { exact: true }).textContent()) ?? ""
    expect(second).not.toBe(secret)
    await scene.click("I have copied it")
    await scene.page.getByText("Old secret works until").waitFor()
    expect([await status(secret), await status(second)]).toEqual([200, 200])
    await scene.pick("Actions for android", "Delete")
    await scene.submit("Delete key")
    await expect.poll(async () => await scene.page.getByText("android", { exact: true }).count()).toBe(0)
    expect(await status(second)).toBe(401)
  })

  test("a key's limits are set on the page, shown again, and hold", async () => {
    const ask = async (key: string, model: string): Promise<[number, unknown]> => {
      const questions = [{ type: "predicate", instructions: "Is it late?" }]
      const response = await fetch(`${scene.server.url}/v1/decisions`, {
        method: "POST",
        headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
        body: JSON.stringify({ model, input: "The parcel is late.", questions }),
      })
      const body = (await response.json()) as { error?: { code?: string } }
      return [response.status, body.error?.code]
    }
    await scene.open("keys")
    await scene.click("Create key")
    await scene.page.getByLabel("Name").fill("limited")
    await scene.page.getByText("Limits", { exact: true }).click()
    await scene.page.getByLabel("Most USD a day").fill("1.5")
    await scene.page.getByLabel("Warn at USD a day").fill("2")
    await scene.page.getByLabel("Requests a minute").fill("1")
    await scene.page.getByLabel("Allowed models").fill("umpire-decide")
    await scene.page.getByLabel("Allowed networks").fill("127.0.0.0/8, ::1")
    await expect.poll(async () => await scene.problems()).toEqual([])
    await scene.submit("Create key")
    await scene.dialog().getByRole("alert").getByText("lower than the cutoff").waitFor()
    await scene.page.getByLabel("Warn at USD a day").fill("1")
    await scene.submit("Create key")
    const secret = (await scene.page.getByLabel("API key", { exact: true }).textContent()) ?? ""
    await scene.click("I have copied it")
    const row = scene.page.getByRole("row", { name: /limited/ })
    await row.getByText("$0.00 of $1.50 today").waitFor()

    // At once: a minute may pass between two on a busy machine.
    const both = await Promise.all([ask(secret, "umpire-decide"), ask(secret, "umpire-decide")])
    expect(both.toSorted(([a], [b]) => a - b)).toEqual([
      [200, undefined],
      [429, "rate_limited"],
    ])

    await scene.pick("Actions for limited", "Edit")
    await scene.page.getByText("Limits", { exact: true }).click()
    await scene.expectValue("Most USD a day", "1.5")
    await scene.expectValue("Warn at USD a day", "1")
    await scene.expectValue("Requests a minute", "1")
    await scene.expectValue("Allowed models", "umpire-decide")
    await scene.page.getByLabel("Requests a minute").fill("")
    await scene.submit("Save")
    await expect.poll(async () => await ask(secret, "smollm2-135m-instruct")).toEqual([403, "model_denied"])
    await scene.pick("Actions for limited", "Edit")
    await scene.page.getByText("Limits", { exact: true }).click()
    await scene.page.getByLabel("Allowed networks").fill("10.0.0.0/8")
    await scene.submit("Save")
    await expect.poll(async () => await ask(secret, "umpire-decide")).toEqual([403, "network_denied"])
    await scene.pick("Actions for limited", "Delete")
    await scene.submit("Delete key")
  })

  test("a double click on Create key makes one key, and the form is disabled while it writes", async () => {
    await scene.open("keys")
    await scene.click("Create key")
    await scene.page.getByLabel("Name").fill("made once")
    const held = await holdWrites(scene.page)
    await scene.submitTwice("Create key")
    await expect.poll(async () => await scene.page.getByLabel("Name").isDisabled()).toBe(true)
    await held.release()
    await scene.click("I have copied it")
    await scene.page.getByText("made once", { exact: true }).waitFor()
    expect(held.count()).toBe(1)
    await expect.poll(async () => await scene.page.getByText("made once", { exact: true }).count()).toBe(1)
    await scene.pick("Actions for made once", "Delete")
    await scene.submit("Delete key")
  })

  test("a key without permissions is refused in words", async () => {
    await scene.open("keys")
    await scene.click("Create key")
    await scene.page.getByLabel("Name").fill("powerless")
    await scene.page.getByLabel("inference").uncheck()
    await scene.submit("Create key")
    await scene.dialog().getByRole("alert").getByText("permissions").waitFor()
    await scene.submit("Cancel")
  })

  test("someone is invited, joins by the link, gets another role, and is removed", async () => {
    await scene.open("members")
    await scene.click("Invite")
    await scene.page.getByLabel("Email").fill("grace@example.com")
    await scene.submit("Invite")
    await scene.page.getByLabel("Invitation link").waitFor()
    await scene.click("I have copied it")
    await scene.pick("Actions for grace@example.com", "New link")
    const link = (await scene.page.getByLabel("Invitation link").textContent()) ?? ""
    await scene.click("I have copied it")

    const guest = await scene.browser.openElsewhere()
    await guest.goto(`${scene.server.url}/join`)
    await guest.getByText("This link holds no invitation.").waitFor()
    // Pasted into the open page.
    await guest.goto(link)
    await guest.getByRole("heading", { name: "Join Personal" }).waitFor()
    await guest.getByText("ada@example.com invited grace@example.com to join as a member.").waitFor()
    await guest.getByLabel("Your name").fill("Grace <b>Hopper</b>")
    await guest.getByLabel("Choose a password").fill("nanoseconds everywhere")
    await guest.getByRole("button", { name: "Join" }).click()
    await guest.getByRole("heading", { name: "Playground" }).waitFor()
    await guest.goto(`${scene.server.url}/o/${scene.orgId}/members`)
    await guest.getByText("No pending invitations").waitFor()
    await expect.poll(async () => await guest.getByRole("button", { name: "Invite" }).count()).toBe(0)
    await expect.poll(async () => await guest.getByText("Invite someone by email address").count()).toBe(0)
    await guest.goto(`${scene.server.url}/o/${scene.orgId}/keys?open=create`)
    await expect.poll(async () => await guest.getByLabel("Owner").isDisabled()).toBe(true)
    await expect.poll(async () => await guest.getByLabel("api-admin").count()).toBe(0)
    await guest.getByLabel("Name").fill("Grace's own")
    await guest.getByRole("dialog").getByRole("button", { name: "Create key" }).click()
    const own = (await guest.getByLabel("API key", { exact: true }).textContent()) ?? ""
    expect(await status(own)).toBe(200)
    await guest.getByRole("button", { name: "I have copied it" }).click()
    await guest
      .getByRole("row", { name: /Grace's own/ })
      .getByText("Grace <b>Hopper</b>")
      .waitFor()
    await expect
      .poll(async () => await guest.getByRole("button", { name: "Actions for first key" }).count())
      .toBe(0)
    await guest.goto(`${scene.server.url}/o/${scene.orgId}/audit`)
    await guest.getByText("Only owners can read the audit log.").waitFor()
    const pages = guest.getByRole("navigation", { name: "Pages" })
    await pages.getByRole("link", { name: "Requests" }).waitFor()
    await expect.poll(async () => await pages.getByRole("link", { name: "Audit log" }).count()).toBe(0)
    await guest.context().close()
    const late = await scene.browser.openElsewhere()
    await late.goto(link)
    await late.getByText("This invitation to Personal has already been used.").waitFor()
    await late.context().close()

    await scene.page.reload()
    await scene.page.getByText("Grace <b>Hopper</b>").waitFor()
    await scene.pick("Actions for grace@example.com", "Change role")
    await scene.dialog().getByLabel("Role").selectOption("Owner")
    await scene.submit("Save")
    await expect
      .poll(async () => await scene.page.getByRole("row", { name: /Grace/ }).getByText("Owner").count())
      .toBe(1)
    await scene.pick("Actions for grace@example.com", "Remove")
    await scene.submit("Remove")
    await expect.poll(async () => await scene.page.getByText("grace@example.com").count()).toBe(0)
  })

  test("an invitation is taken back", async () => {
    await scene.open("members")
    await scene.click("Invite")
    await scene.page.getByLabel("Email").fill("alan@example.com")
    await scene.submit("Invite")
    await scene.click("I have copied it")
    await scene.pick("Actions for alan@example.com", "Revoke")
    await scene.page.getByText("No pending invitations").waitFor()
  })

  test("an organization is created in the console, and is where one is then", async () => {
    await scene.open("keys")
    await scene.pick("Organization Personal , switch", "Create organization")
    await scene.page.getByLabel("Name of the organization").fill("Side project")
    await scene.submitTwice("Create organization")
    await scene.page.getByRole("button", { name: "Organization Side project , switch" }).waitFor()
    expect(scene.page.url()).not.toContain(scene.orgId)
    // It can be used at once: the test card has bought its first credit.
    const decide = scene.page.getByRole("button", { name: /^Decide/ })
    await expect.poll(async () => await decide.isEnabled()).toBe(true)
    await expect.poll(async () => await scene.page.getByRole("status", { name: "Billing" }).count()).toBe(0)
    await scene.click("Organization Side project , switch")
    await expect
      .poll(async () => await scene.page.getByRole("menuitem", { name: "Side project" }).count())
      .toBe(1)
    await scene.page.keyboard.press("Escape")
  })

  test("a key leads to its usage", async () => {
    await scene.open("keys")
    await scene.page.getByRole("link", { name: "View usage of first key" }).click()
    await scene.page.getByRole("heading", { name: "Analytics", level: 1 }).waitFor()
    await scene.page.getByRole("list", { name: "Filters" }).getByText("first key").waitFor()
  })

  test("one switches between organizations", async () => {
    await makeOrganization(scene.server, "Acme")
    await scene.open("keys")
    await scene.pick("Organization Personal , switch", "Acme")
    await scene.page.getByRole("button", { name: "Organization Acme , switch" }).waitFor()
    expect(scene.page.url()).not.toContain(scene.orgId)
    await scene.page.goto(scene.server.url)
    await scene.page.getByRole("button", { name: "Organization Acme , switch" }).waitFor()
    await scene.open("keys")
  })

  test("the last primary owner cannot leave, and the page says why", async () => {
    await scene.open("members")
    await scene.pick("Actions for ada@example.com", "Remove")
    await scene.submit("Remove")
    await scene.dialog().getByRole("alert").getByText("Cannot").waitFor()
    await scene.submit("Cancel")
  })

  test("access to a closed model is asked for", async () => {
    await scene.open("models")
    await scene.page
      .getByRole("article", { name: "umpire-reserved" })
      .getByRole("button", { name: "Request access" })
      .click()
    await scene.page.getByRole("table", { name: "Access requests" }).getByText("Pending").waitFor()
    await scene.page.getByRole("article", { name: "umpire-reserved" }).getByText("Access requested").waitFor()
  })

  test("the name and the retention are saved", async () => {
    await scene.open("settings")
    const panel = scene.page.getByRole("region", { name: "Organization" })
    for (const name of ["Umpires & Co", "Personal"]) {
      await panel.getByLabel("Name").fill(name)
      await panel.getByLabel("Keep stored responses for (days)").fill("7")
      await panel.getByRole("button", { name: "Save" }).click()
      await scene.page.getByRole("button", { name: `Organization ${name} , switch` }).waitFor()
    }
    await scene.page.reload()
    await scene.expectValue("Keep stored responses for (days)", "7")
  })
}
