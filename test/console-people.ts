/** Keys, members, organizations and models in a browser: every write, and refusals in words. */
import { expect, test } from "vitest"
import { startChatServer } from "./chat-servers.ts"
import { type Scene, expectSoundPage, holdWrites } from "./console-scene.ts"
import { makeOrganization, ownerOf } from "./console.ts"

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
    await scene.expectSound()
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
    await scene.page.getByLabel("Requests a minute").fill("many")
    await scene.page.getByLabel("Allowed models").fill("umpire-decied")
    await scene.page.getByLabel("Allowed networks").fill("localhost")
    // Folded away, they still stop the form, which shows the first of them.
    await scene.page.getByText("Limits", { exact: true }).click()
    await scene.submit("Create key")
    await scene.dialog().getByText("A whole number is needed.").waitFor()
    await expect.poll(async () => await scene.page.evaluate("document.activeElement.value")).toBe("many")
    await scene.dialog().getByText("No model is called “umpire-decied”.").waitFor()
    await scene.dialog().getByText("“localhost” is neither an address nor a network.").waitFor()
    await scene.expectSound()
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
    await scene.expectValue("Most USD a day", "1.50")
    await scene.expectValue("Warn at USD a day", "1.00")
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

  test("a cascade is created, changed and deleted on the Models page, and a model is tried from there", async () => {
    await scene.open("models")
    await scene.click("Create virtual model")
    await scene.dialog().getByLabel("Name").fill("careful")
    await scene.dialog().getByLabel("Model 1").selectOption("umpire-decide-small")
    await scene.dialog().getByLabel("Model 2").selectOption("umpire-decide")
    await scene.dialog().getByLabel("Choice, %").fill("700")
    await scene.submit("Create")
    await scene.dialog().getByText("From 0.0% to 100.0%.").waitFor()
    await scene.dialog().getByLabel("Choice, %").fill("72,5")
    await scene.dialog().getByLabel("Further models cost at most").fill("2,50")
    await scene.expectSound()
    await scene.submit("Create")
    const card = scene.page.getByRole("article", { name: "careful" })
    await card.getByText("72.5% for a choice").waitFor()
    await card.getByRole("link", { name: "What it sends on, costs and changes" }).click()
    await scene.page.getByText("Nothing yet").waitFor()
    for (const input of ["The parcel is late.", "The parcel is lost."])
      await scene.server.post("/v1/decisions", {
        model: "careful",
        input,
        questions: [
          { type: "score", instructions: "How angry?", levels: [{ label: "calm" }, { label: "angry" }] },
        ],
      })
    await expect
      .poll(
        async () => {
          await scene.page.reload()
          const row = scene.page.getByRole("table", { name: "By model" }).getByRole("row").nth(1)
          return await row.textContent({ timeout: 5_000 }).catch(() => "")
        },
        { timeout: 60_000 },
      )
      .toMatch(/Questions2Share of questions100/)
    await scene.page.getByRole("table", { name: "By model" }).getByText("umpire-decide-small").waitFor()
    await scene.expectSound()
    await scene.open("models")
    await scene.pick("Actions for careful", "Change")
    await scene.dialog().getByText("Fallback", { exact: true }).click()
    await scene.submit("Save")
    await card
      .getByText("Tried in this order until one answers: umpire-decide-small, umpire-decide")
      .waitFor()
    await scene.expectSound()
    await card.getByRole("button", { name: "Try" }).click()
    await scene.page.getByRole("heading", { name: "Playground", level: 1 }).waitFor()
    const asked = scene.page.getByLabel("Model", { exact: true })
    await expect.poll(async () => await asked.inputValue()).toBe("careful")
    await asked.selectOption("umpire-decide")
    await scene.open("models")
    await scene.pick("Actions for careful", "Delete")
    await scene.submit("Delete")
    await card.waitFor({ state: "detached" })
  })

  test("a choice by language is made on the Models page, and what is no language is named", async () => {
    await scene.open("models")
    await scene.click("Create virtual model")
    const languages = scene.dialog().getByLabel("Languages 1")
    await scene.dialog().getByLabel("Name").fill("polyglot")
    await scene.dialog().getByText("Language", { exact: true }).click()
    await scene.dialog().getByLabel("Model 1").selectOption("umpire-decide")
    await scene.dialog().getByLabel("Model 2").selectOption("umpire-decide-multilingual")
    await scene.submit("Create")
    await languages.and(scene.page.locator(":invalid")).waitFor()
    await languages.fill("english, en, qq")
    await scene.submit("Create")
    await scene.dialog().getByRole("alert").getByText("Not known as a language: english and qq.").waitFor()
    await scene.expectSound()
    await languages.fill("EN; unknown")
    await scene.submit("Create")
    const card = scene.page.getByRole("article", { name: "polyglot" })
    await card
      .getByText("en, unknown: umpire-decide; every other language: umpire-decide-multilingual")
      .waitFor()
    await scene.pick("Actions for polyglot", "Delete")
    await scene.submit("Delete")
    await card.waitFor({ state: "detached" })
  })

  test("an alias is made on the Models page, and answers as the model that it names", async () => {
    await scene.open("models")
    await scene.click("Create virtual model")
    await scene.dialog().getByLabel("Name").fill("judge")
    await scene.dialog().getByText("Alias", { exact: true }).click()
    await scene.dialog().getByText("Another name of a model.").waitFor()
    await expect
      .poll(
        async () =>
          await scene
            .dialog()
            .getByLabel(/^Model \d$/)
            .count(),
      )
      .toBe(1)
    await scene.dialog().getByLabel("Model 1").selectOption("umpire-decide-small")
    await scene.expectSound()
    await scene.submit("Create")
    const card = scene.page.getByRole("article", { name: "judge" })
    await card.getByText("Another name of umpire-decide-small").waitFor()
    const questions = [{ type: "predicate", instructions: "Is it late?" }]
    const answers = async (model: string): Promise<unknown> => {
      const response = await scene.server.post("/v1/decisions", { model, input: "It is late.", questions })
      const body = (await response.json()) as { answers?: unknown; error?: { code: string } }
      return body.answers ?? body.error?.code
    }
    const own = await answers("umpire-decide-small")
    expect(own).toEqual([expect.objectContaining({ type: "predicate" })])
    expect(await answers("judge")).toEqual(own)
    await scene.pick("Actions for judge", "Delete")
    await scene.submit("Delete")
    await card.waitFor({ state: "detached" })
    expect(await answers("judge")).toBe("unknown_model")
  })

  test("a model is connected by address and key on the Models page, calibrated, tried and disconnected", async () => {
    const server = await startChatServer("anthropic")
    try {
      await scene.open("models")
      await scene.page.getByText("Size, languages and measured quality").first().click()
      await scene.page.getByText("33M weights, 35 MB").first().waitFor()
      const download = scene.page.waitForEvent("download")
      await scene.page.getByRole("button", { name: "Download its card" }).first().click()
      expect((await download).suggestedFilename()).toBe("umpire-model-card.md")
      await scene.click("Connect a model")
      const field = (name: string) => scene.dialog().getByLabel(name, { exact: true })
      await field("Provider").selectOption("Anthropic")
      await field("Address").fill(server.url)
      await field("Key").fill("a wrong key")
      await field("Model").fill("claude-large")
      await field("Input, $").fill("1")
      await field("Cached input, $").fill("0,1")
      await field("Output, $").fill("5")
      await scene.submit("Connect and test")
      await scene.dialog().getByRole("alert").getByText("Cannot connect claude-large").waitFor()
      await field("Key").fill(server.key)
      await scene.expectSound()
      await scene.submit("Connect and test")
      await scene.page.getByRole("dialog", { name: "claude-large answers" }).waitFor()
      await scene.dialog().getByText("Decides by structured answers").waitFor()
      await scene.submit("Done")
      const card = scene.page.getByRole("article", { name: "claude-large" })
      await card.getByText("Not calibrated").waitFor()
      await scene.pick("Actions for claude-large", "Calibrate")
      await scene
        .dialog()
        .getByText(/costs at most \$\d/)
        .waitFor()
      let asked = 0
      server.refuses = () => (++asked === 5 ? 400 : null)
      await scene.submit("Ask 200 questions")
      await scene.dialog().getByText("Calibrated: it is right on").waitFor()
      await scene.dialog().getByText("1 question is left out").waitFor()
      await scene
        .dialog()
        .getByRole("list", { name: "Questions left out" })
        .getByText(/^Question \d+: .*this is blocked here/)
        .waitFor()
      await scene.submit("Close")
      await card.getByText("Calibrated", { exact: true }).waitFor()
      await scene.expectSound()
      const tenant = await makeOrganization(scene.server, "Tenant")
      await scene.page.goto(`${scene.server.url}/o/${tenant}/models`)
      await scene.click("Connect a model")
      await scene.dialog().getByText("Ask the operator for it").waitFor()
      await scene.submit("Done")
      await scene.open("models")
      await scene.pick("Actions for claude-large", "Disconnect")
      await scene.submit("Disconnect")
      await card.waitFor({ state: "detached" })
    } finally {
      await server.close()
    }
  })

  test("a cascade onto a model that cannot answer decisions is refused when it is saved", async () => {
    const server = await startChatServer("plain")
    const { api } = await ownerOf(scene.server)
    const params = { org_id: scene.orgId }
    try {
      const { id } = await api.createConnectedModel({
        params,
        body: {
          sku: "talker",
          dialect: "openai",
          url: server.url,
          key: server.key,
          model: "talker",
          price_m_input_tokens_usd: "1",
          price_m_input_cache_read_tokens_usd: "1",
          price_m_output_tokens_usd: "1",
        },
      })
      // From here on it chats, and never answers in the form.
      server.malformed = Number.POSITIVE_INFINITY
      await scene.open("models")
      await scene.click("Create virtual model")
      await scene.dialog().getByLabel("Name").fill("hopeless")
      await scene.dialog().getByLabel("Model 1").selectOption("umpire-decide-small")
      await scene.dialog().getByLabel("Model 2").selectOption("talker")
      await scene.submit("Create")
      await scene.dialog().getByRole("alert").getByText("talker cannot answer decisions").waitFor()
      await scene.expectSound()
      // A split takes it: it may be for chats.
      await scene.dialog().getByText("Split", { exact: true }).click()
      await scene.dialog().getByLabel("Share 1").fill("3")
      await scene.submit("Create")
      const card = scene.page.getByRole("article", { name: "hopeless" })
      await card.getByText("75.0% umpire-decide-small, 25.0% talker").waitFor()
      await scene.pick("Actions for hopeless", "Delete")
      await scene.submit("Delete")
      await card.waitFor({ state: "detached" })
      await api.deleteConnectedModel({ params: { ...params, connected_model_id: id } })
    } finally {
      await server.close()
    }
  })

  test("a double click on Create key makes one key, and the form is disabled while it writes", async () => {
    await scene.open("keys")
    await scene.click("Create key")
    await scene.page.getByLabel("Name").fill("made once")
    const held = await holdWrites(scene.page)
    await scene.submitTwice("Create key")
    await expect.poll(async () => await scene.page.getByLabel("Name").isDisabled()).toBe(true)
    await expect.poll(() => held.count()).toBe(1)
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
    await scene
      .dialog()
      .getByRole("alert")
      .getByText("Permissions: cannot be empty", { exact: true })
      .waitFor()
    await scene.submit("Cancel")
  })

  test("someone is invited, joins by the link, gets another role, and is removed", async () => {
    await scene.open("members")
    await scene.click("Invite")
    await scene.page.getByLabel("Email").fill("grace@example.com")
    await scene.submit("Invite")
    await scene.page.getByLabel("Invitation link").waitFor()
    await scene.dialog().getByText("an address that works on this machine only").waitFor()
    await scene.expectSound()
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

  test.each([
    ["Reviewer", "Review", ["Review", "Settings"]],
    ["Billing", "Billing", ["Analytics", "Billing", "Settings"]],
  ])(
    "who is invited as %s comes to the page %s, and the menu has what the role is for",
    async (role, home, places) => {
      const email = `${role.toLowerCase()}@example.com`
      await scene.open("members")
      await scene.click("Invite")
      await scene.page.getByLabel("Email").fill(email)
      await scene.dialog().getByLabel("Role").selectOption(role)
      await scene.dialog().getByText("Runs no model.").waitFor()
      await scene.submit("Invite")
      const link = (await scene.page.getByLabel("Invitation link").textContent()) ?? ""
      await scene.click("I have copied it")
      const guest = await scene.browser.openElsewhere()
      await guest.goto(link)
      await guest.getByLabel("Your name").fill("Rita")
      await guest.getByLabel("Choose a password").fill("nanoseconds everywhere")
      await guest.getByRole("button", { name: "Join" }).click()
      await guest.getByRole("heading", { name: home, level: 1 }).waitFor()
      const menu = guest.getByRole("navigation", { name: "Pages" })
      expect((await menu.getByRole("link").allTextContents()).map((name) => name.trim())).toEqual(places)
      await expectSoundPage(guest)
      await guest.context().close()
      await scene.page.reload()
      await scene.pick(`Actions for ${email}`, "Remove")
      await scene.submit("Remove")
      await expect.poll(async () => await scene.page.getByText(email).count()).toBe(0)
    },
  )

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
