/** Every page of the console in a browser: what it shows, every write, errors in words, and who can read it. */
import { readFileSync } from "node:fs"
import { spawnSync } from "node:child_process"
import { createRequire } from "node:module"
import { join } from "node:path"
import type { Page } from "playwright-core"
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest"
import { type Browser, openBrowser } from "./browser.ts"
import { clientOf, consolePages, owner, signIn, startConsoleServer } from "./console.ts"
import type { TestServer } from "./server.ts"

let server: TestServer
let browser: Browser
let page: Page
let orgId = ""
/** What the browser complained about; the policy of the page forbids what it complains about most. */
const complaints: string[] = []

beforeAll(async () => {
  server = await startConsoleServer()
  browser = await openBrowser({ permissions: ["clipboard-read", "clipboard-write"] })
  page = browser.context.pages()[0] ?? (await browser.context.newPage())
  page.on("pageerror", (error) => complaints.push(String(error)))
  page.on("console", (message) => {
    // A refused request is the server's answer, not a fault of the page.
    if (message.type() === "error" && !message.text().startsWith("Failed to load resource"))
      complaints.push(message.text())
  })
  orgId = await signIn(page, server.url)
})
afterAll(async () => {
  await browser.close()
  await server.stop()
})
beforeEach(() => {
  complaints.length = 0
})

const open = async (path: string): Promise<void> => {
  await page.goto(`${server.url}/o/${orgId}/${path}`)
  const heading = consolePages.find(([one]) => one === path)?.[1] ?? ""
  await page.getByRole("heading", { name: heading, level: 1 }).waitFor()
}
const click = async (name: string | RegExp): Promise<void> => await page.getByRole("button", { name }).click()
const pick = async (menu: string, item: string): Promise<void> => {
  await click(menu)
  await page.getByRole("menuitem", { name: item }).click()
}
const dialog = () => page.getByRole("dialog")
const submit = async (name: string): Promise<void> =>
  await dialog().getByRole("button", { name, exact: true }).click()

const answer = (number: number) => page.getByRole("group", { name: `Answer to question ${number}` })
const expectValue = async (label: string, value: string): Promise<void> => {
  await expect.poll(async () => await page.getByLabel(label).inputValue()).toBe(value)
}
/** What the API answers to a key. */
const status = async (key: string): Promise<number> =>
  (await fetch(`${server.url}/v1/models`, { headers: { authorization: `Bearer ${key}` } })).status

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8")

/** Serious accessibility problems of the page as it stands: of every kind, or of the rules named. */
async function problems(rules: readonly string[] = []): Promise<string[]> {
  await page.evaluate(axe)
  const chosen = rules.length > 0 ? { runOnly: rules } : {}
  const found = (await page.evaluate(
    `axe.run(document, ${JSON.stringify({ resultTypes: ["violations"], ...chosen })})`,
  )) as {
    violations: { id: string; impact: string; nodes: { html: string }[] }[]
  }
  return found.violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 160)).join(" | ")}`)
}

describe.each(["light", "dark"] as const)("in %s", (colorScheme) => {
  test.each(consolePages)(
    "%s has no serious accessibility problem and breaks no rule of its policy",
    async (path) => {
      await page.emulateMedia({ colorScheme })
      await open(path)
      await page.waitForLoadState("networkidle")
      // Only colors differ in the dark.
      expect(await problems(colorScheme === "dark" ? ["color-contrast"] : [])).toEqual([])
      expect(complaints).toEqual([])
    },
  )
})

test("on a phone every page is reached by its menu and fits the width", async () => {
  await page.setViewportSize({ width: 390, height: 844 })
  for (const [path, heading] of consolePages) {
    await click("Open the menu")
    await page.getByRole("dialog", { name: "Menu" }).getByRole("link", { name: heading, exact: true }).click()
    await page.getByRole("heading", { name: heading, level: 1 }).waitFor()
    const overflow = await page.evaluate("document.documentElement.scrollWidth - innerWidth")
    expect([path, overflow]).toEqual([path, 0])
  }
  await page.setViewportSize({ width: 1280, height: 860 })
})

describe("the playground", () => {
  test("asks every kind of question by keyboard and shows probabilities, tokens, latency and cost", async () => {
    await open("playground")
    await pick("Examples", "Support ticket")
    await page.keyboard.press("Control+Enter")
    await answer(3).waitFor()
    expect(await answer(2).getByRole("meter").count()).toBe(3)
    const result = page.getByRole("status", { name: "Result" })
    expect(await result.textContent()).toMatch(/umpire-nano.*Tokens\d+.*Latency.*(?:ms|s).*Cost\$0\.0/)
  })

  test("questions and options are added, ordered and removed", async () => {
    await open("playground")
    await pick("Add question", "Score on levels")
    await page.getByLabel("Text of question 4").fill("How polite is it?")
    const card = page.getByRole("region", { name: "Question 4" })
    await card.getByRole("button", { name: "Add level" }).click()
    await card.getByLabel("Level 4", { exact: true }).fill("extreme")
    await card.getByLabel("Level 4", { exact: true }).press("Alt+ArrowUp")
    expect(await card.getByLabel("Level 3", { exact: true }).inputValue()).toBe("extreme")
    await pick("Actions for question 4", "Move up")
    expect(await page.getByLabel("Text of question 3").inputValue()).toBe("How polite is it?")
    // Both ends must be in view: a page that scrolls under a drag drops it elsewhere.
    await page.getByRole("heading", { name: "Playground" }).scrollIntoViewIfNeeded()
    await page.getByLabel("Drag question 2").dragTo(page.getByLabel("Text of question 1"))
    expect(await page.getByLabel("Text of question 2").inputValue()).toBe(
      "Does the customer ask for a refund?",
    )
    await pick("Actions for question 3", "Remove")
    expect(await page.getByRole("region", { name: /^Question/ }).count()).toBe(3)
  })

  test("System One, and a second model beside the first, answer the same questions", async () => {
    await open("playground")
    await pick("Examples", "Support ticket")
    await page.getByLabel("System One").check()
    await click("Compare")
    await page.getByLabel("Second model").selectOption("umpire-nano")
    await click("Decide")
    await answer(1).waitFor()
    expect(await answer(1).getByRole("meter").count()).toBe(4)
    await click("Stop comparing")
    await page.getByLabel("Decisions").check()
  })

  test("code, link and history bring the same request elsewhere and back", async () => {
    await open("playground")
    await page.getByLabel("Evidence text").fill("A very particular piece of evidence.")
    await click("Code")
    await page.getByLabel("Python").check()
    expect(await page.getByLabel("Code", { exact: true }).textContent()).toContain("A very particular piece")
    await click("Close")
    await click("Share")
    await page.getByRole("button", { name: "Link copied" }).waitFor()
    const shared = String(await page.evaluate("navigator.clipboard.readText()"))
    await click("Decide")
    await page.getByRole("status", { name: "Result" }).waitFor()
    await page.getByLabel("Evidence text").fill("Something else.")
    await page.goto("about:blank")
    await page.goto(shared)
    await expectValue("Evidence text", "A very particular piece of evidence.")
    await page.getByLabel("Evidence text").fill("Something else.")
    await click("History")
    await dialog().getByText("A very particular piece").first().click()
    await expectValue("Evidence text", "A very particular piece of evidence.")
  })

  test("a file becomes evidence, and one that is not text is refused in words", async () => {
    await open("playground")
    const picker = page.getByLabel("Evidence file")
    await picker.setInputFiles({
      name: "letter.txt",
      mimeType: "text/plain",
      buffer: Buffer.from("Dear umpire"),
    })
    await expectValue("Evidence text", "Dear umpire")
    await picker.setInputFiles({
      name: "photo.png",
      mimeType: "image/png",
      buffer: Buffer.from([0x89, 0xff, 0xfe]),
    })
    await page.getByText("photo.png is not text").waitFor()
  })

  test("what is missing is said before asking, and what the server refuses after", async () => {
    await open("playground")
    await page.getByLabel("Evidence text").fill(" ")
    await page.getByText("Give some evidence").waitFor()
    expect(await page.getByRole("button", { name: "Decide" }).isDisabled()).toBe(true)
    await page.getByLabel("Evidence text").fill("a")
    await page.getByLabel("Model", { exact: true }).selectOption("umpire-reserved")
    await click("Decide")
    await page.getByRole("alert").getByText("Cannot").waitFor()
    await page.getByLabel("Model", { exact: true }).selectOption("umpire-nano")
  })
})

test("chat shows the answer as it is written, and stops", async () => {
  await open("chat")
  await page.getByText("Instructions and settings").click()
  await page.getByLabel("Most tokens").fill("12")
  await page.getByLabel("Message").fill("Say hello.")
  await page.getByLabel("Message").press("Enter")
  await page.getByText(/tokens in, \d+ out/).waitFor()
  expect(await page.getByRole("log").getByText("The model").count()).toBe(1)
})

test("an evaluation runs, can be cancelled, and shows how good the answers are", async () => {
  await open("evaluate")
  const rows = [
    "text,label",
    ...Array.from(
      { length: 12 },
      (_, index) =>
        `${index % 2 ? "I want my money back" : "Thank you very much"} ${index},${index % 2 ? "yes" : "no"}`,
    ),
  ]
  await page
    .getByLabel("Labelled file")
    .setInputFiles({ name: "rows.csv", mimeType: "text/csv", buffer: Buffer.from(rows.join("\n")) })
  await page.getByLabel("Question to ask of every row").fill("Does the customer want a refund?")
  await click("Evaluate 12 rows")
  await page.getByText("Done: 12 of 12 rows").waitFor()
  const results = page.getByRole("region", { name: "Results" })
  expect(await results.getByText("Accuracy").first().isVisible()).toBe(true)
  await results.getByLabel("Say yes from").fill("0.9")
  expect(await results.getByRole("region", { name: "Threshold" }).textContent()).toContain("Precision")
  expect(await problems()).toEqual([])
  const download = page.waitForEvent("download")
  await click("Export all rows")
  expect(readFileSync((await (await download).path()) ?? "", "utf8").split("\n")).toHaveLength(13)
  await click("Evaluate 12 rows")
  await click("Cancel")
  await page.getByText(/^(?:Stopped|Done): /).waitFor()
  await page
    .getByLabel("Labelled file")
    .setInputFiles({ name: "bad.jsonl", mimeType: "text/plain", buffer: Buffer.from("{") })
  await page.getByText("Line 1 is not JSON").waitFor()
})

test("a key is made, changed, rotated and ended; each secret is shown once and works", async () => {
  await open("keys")
  await click("Create key")
  await page.getByLabel("Name").fill("robot")
  await submit("Create key")
  const secret = (await page.getByLabel("API key", { exact: true }).textContent()) ?? ""
  expect(secret).toMatch(/^ump_/)
  expect(await problems()).toEqual([])
  await click("I have stored it")
  expect(await page.content()).not.toContain(secret)
  await page.reload()
  await page.getByText("robot").waitFor()
  expect(await page.content()).not.toContain(secret)
  expect(await status(secret)).toBe(200)

  await pick("Actions for robot", "Change")
  await page.getByLabel("Name").fill("android")
  await page.getByLabel("api-read").check()
  await submit("Save")
  await page.getByText("android").waitFor()
  await pick("Actions for android", "Rotate the secret")
  await page.getByLabel("The old secret").selectOption("Works for another hour")
  await submit("Rotate")
  const second = (await page.getByLabel("API key", { exact: true }).textContent()) ?? ""
  expect(second).not.toBe(secret)
  await click("I have stored it")
  await page.getByText("old secret until").waitFor()
  expect([await status(secret), await status(second)]).toEqual([200, 200])
  await pick("Actions for android", "End the key")
  await submit("End the key")
  await expect.poll(async () => await page.getByText("android").count()).toBe(0)
  expect(await status(second)).toBe(401)
})

test("a key without permissions is refused in words", async () => {
  await open("keys")
  await click("Create key")
  await page.getByLabel("Name").fill("powerless")
  await page.getByLabel("inference").uncheck()
  await submit("Create key")
  await dialog().getByRole("alert").getByText("permissions").waitFor()
  await submit("Cancel")
})

test("someone is invited, joins by the link, gets another role, and is removed", async () => {
  await open("members")
  await click("Invite")
  await page.getByLabel("Email").fill("grace@example.com")
  await submit("Invite")
  await page.getByLabel("Invitation link").waitFor()
  await click("I have stored it")
  await pick("Actions for grace@example.com", "New link")
  const link = (await page.getByLabel("Invitation link").textContent()) ?? ""
  await click("I have stored it")

  const other = await browser.context.browser()?.newContext()
  const guest = (await other?.newPage()) ?? page
  await guest.goto(link)
  await guest.getByLabel("Your name").fill("Grace <b>Hopper</b>")
  await guest.getByLabel("Choose a password").fill("nanoseconds everywhere")
  await guest.getByRole("button", { name: "Join" }).click()
  await guest.getByRole("heading", { name: "Playground" }).waitFor()
  await guest.goto(`${server.url}/o/${orgId}/keys`)
  await guest.getByText("Owners of the organization create and change keys.").waitFor()
  await guest.goto(`${server.url}/o/${orgId}/audit`)
  await guest.getByText("Owners read the audit log.").waitFor()
  await other?.close()

  await page.reload()
  await page.getByText("Grace <b>Hopper</b>").waitFor()
  await pick("Actions for grace@example.com", "Change role")
  await dialog().getByLabel("Role").selectOption("Owner")
  await submit("Save")
  await expect
    .poll(async () => await page.getByRole("row", { name: /Grace/ }).getByText("Owner").count())
    .toBe(1)
  await pick("Actions for grace@example.com", "Remove")
  await submit("Remove")
  await expect.poll(async () => await page.getByText("grace@example.com").count()).toBe(0)
})

test("an invitation is taken back", async () => {
  await open("members")
  await click("Invite")
  await page.getByLabel("Email").fill("alan@example.com")
  await submit("Invite")
  await click("I have stored it")
  await pick("Actions for alan@example.com", "Take back")
  await page.getByText("Nobody is on the way").waitFor()
})

test("one switches between organizations", async () => {
  const umpire = join(import.meta.dirname, "..", "bin", "umpire.js")
  const made = spawnSync(
    process.execPath,
    [umpire, "orgs", "create", "--name", "Acme", "--owner", owner.email],
    {
      env: { PATH: process.env["PATH"] ?? "", UMPIRE_DATA_DIR: server.dataDirectory },
      encoding: "utf8",
    },
  )
  expect([made.status, made.stderr]).toEqual([0, ""])
  await open("keys")
  await pick("Organization Personal , switch", "Acme")
  await page.getByRole("button", { name: "Organization Acme , switch" }).waitFor()
  expect(page.url()).not.toContain(orgId)
  await page.goto(server.url)
  await page.getByRole("button", { name: "Organization Acme , switch" }).waitFor()
  await open("keys")
})

test("the last primary owner cannot leave, and the page says why", async () => {
  await open("members")
  await pick("Actions for ada@example.com", "Remove")
  await submit("Remove")
  await dialog().getByRole("alert").getByText("Cannot").waitFor()
  await submit("Cancel")
})

test("access to a closed model is asked for", async () => {
  await open("models")
  await page
    .getByRole("article", { name: "umpire-reserved" })
    .getByRole("button", { name: "Ask for access" })
    .click()
  await page.getByRole("table", { name: "Requests for access" }).getByText("pending").waitFor()
  await page.getByRole("article", { name: "umpire-reserved" }).getByText("Access asked for").waitFor()
})

test("the routing policy is previewed before it is saved, and kept", async () => {
  await open("routing")
  await page.getByRole("list", { name: "Regions tried in order" }).getByText("paris").waitFor()
  await page.getByLabel("Exactly one").check()
  await click("oregon (US)")
  await page.getByText("It would be refused").waitFor()
  await click("paris (FR)")
  await click("Move paris up")
  await page.getByLabel("Give up").check()
  await click("Save policy")
  await page.getByText("Saved. It holds from the next request on.").waitFor()
  await page.reload()
  await expect.poll(async () => await page.getByLabel("Exactly one").isChecked()).toBe(true)
  await click("Remove oregon")
  await click("Remove paris")
  await page.getByLabel("Nearest").check()
  await page.getByLabel("Any other").check()
  await click("Save policy")
  await page.getByText("Saved. It holds").waitFor()
})

test("an identity provider is added with checked expressions, tested, paused and deleted", async () => {
  await open("identity")
  await page.getByRole("button", { name: "Add provider" }).first().click()
  await page.getByLabel("Name").fill("ci")
  await page.getByLabel("Issuer").fill("https://issuer.example.com")
  await page.getByLabel("Allowed audiences").fill("umpire")
  await page.getByLabel("Condition to be let in").fill("assertion.sub ==")
  await page.getByText("Not CEL").waitFor()
  await page.getByLabel("Condition to be let in").fill('assertion.sub == "a"')
  await expect.poll(async () => await page.getByText("Not CEL").count()).toBe(0)
  await dialog().getByRole("button", { name: "Add rule" }).click()
  await page.getByLabel("When (CEL), rule 1").fill('attribute.team == "x"')
  await dialog().getByRole("button", { name: "Add attribute" }).click()
  await page.getByLabel("Attribute", { exact: true }).fill("team")
  await page.getByLabel("Expression (CEL)").fill("assertion.team")
  expect(await problems()).toEqual([])
  await submit("Add provider")
  await page.getByRole("article", { name: "ci" }).waitFor()

  await pick("Actions for ci", "Test a token")
  await page.getByLabel("Token (JWT)").fill("not.a.token")
  await submit("Test")
  await page.getByText("It would be refused.").waitFor()
  await submit("Cancel")
  await pick("Actions for ci", "Change")
  await page.getByLabel("Name").fill("pipelines")
  await submit("Save")
  await page.getByRole("article", { name: "pipelines" }).getByText("Revision 2").waitFor()
  await pick("Actions for pipelines", "Pause")
  await page.getByText("paused").waitFor()
  await pick("Actions for pipelines", "Delete")
  await submit("Delete")
  await page.getByText("No providers yet").waitFor()
})

test("credit is bought, refused amounts are explained, and limits are kept", async () => {
  await open("billing")
  const balance = page.getByLabel("Credit balance")
  const before = await balance.textContent()
  await click("Add credit")
  await page.getByLabel("Amount in dollars").fill("5")
  await page.getByText("Between $10.00 and $500.00.").waitFor()
  await page.getByLabel("Amount in dollars").fill("20")
  await submit("Pay $20.00")
  await page.getByText("$20.00 of credit added.").waitFor()
  await submit("Done")
  await expect.poll(async () => await balance.textContent()).not.toBe(before)
  await click("Add credit")
  await page.getByLabel("Amount in dollars").fill("10.02")
  await submit("Pay $10.02")
  await dialog().getByRole("alert").waitFor()
  await submit("Done")

  await click("Remove payment method")
  await page.getByText("no payment method").waitFor()
  await click("Add payment method")
  await page.getByRole("button", { name: "Remove payment method" }).waitFor()

  const refill = page.getByRole("form", { name: "Automatic refill" })
  await refill.getByLabel("Refill to ($)").fill("75")
  await refill.getByRole("button", { name: "Save" }).click()
  await expect.poll(async () => await refill.getByLabel("Refill to ($)").inputValue()).toBe("75.00")
  const controls = page.getByRole("form", { name: "Spend controls" })
  await controls.getByLabel("Warn when a month's spend reaches ($)").fill("50")
  await controls.getByLabel("Stop when a month's spend reaches ($)").fill("40")
  await controls.getByRole("button", { name: "Save" }).click()
  await controls.getByRole("alert").getByText("lower than the cutoff").waitFor()
  await controls.getByLabel("Stop when a month's spend reaches ($)").fill("60")
  await controls.getByRole("button", { name: "Save" }).click()
  await expect
    .poll(async () => await controls.getByLabel("Stop when a month's spend reaches ($)").inputValue())
    .toBe("60.00")
})

test("the name and the retention are saved; a script in any name is text", async () => {
  const evil = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>'
  await open("settings")
  await page.getByLabel("Name").fill(evil)
  await page.getByLabel("Keep stored responses for (days)").fill("7")
  await page.getByRole("region", { name: "Organization" }).getByRole("button", { name: "Save" }).click()
  await page.getByRole("button", { name: /^Organization <img/ }).waitFor()
  const api = clientOf(server)
  await api.createApiKey({ params: { org_id: orgId }, body: { name: evil, permissions: ["inference"] } })
  await api.createWorkloadIdentityProvider({
    params: { org_id: orgId },
    body: {
      name: evil.slice(0, 100),
      config: { type: "oidc", issuer_uri: "https://a.example.com", allowed_audiences: [evil], jwks: null },
      authorization_rules: [{ condition: "true", permissions: ["inference"] }],
    },
  })
  await api.createDecision({ body: { model: evil, input: evil, questions: [] } }).catch(() => undefined)
  for (const [path] of consolePages) {
    await open(path)
    await page.waitForLoadState("networkidle")
    expect(await page.evaluate("window.hacked")).toBeUndefined()
  }
  await open("keys")
  expect(await page.getByText(evil).count()).toBeGreaterThan(0)
  expect(complaints).toEqual([])
  await open("settings")
  await page.getByLabel("Name").fill("Personal")
  await page.getByRole("region", { name: "Organization" }).getByRole("button", { name: "Save" }).click()
  await page.getByRole("button", { name: "Organization Personal , switch" }).waitFor()
})

test("the audit log tells who did what, and filters", async () => {
  await open("audit")
  await page.getByLabel("Action").fill("organization.update")
  await click("Filter")
  await expect.poll(() => page.url()).toContain("organization.update")
  const entry = page.getByRole("list", { name: "Audit log" }).getByRole("listitem").first()
  await entry.getByText("organization.update").click()
  await entry.getByText("This action").waitFor()
  expect(await entry.textContent()).toContain("ada@example.com")
  await click("Clear")
})

test("analytics splits, filters and finds what happened", async () => {
  await open("analytics")
  await expect
    .poll(async () => await page.getByRole("button", { name: /^Requests/ }).textContent(), {
      timeout: 30_000,
    })
    .toMatch(/[1-9]/)
  await page.getByLabel("Split by").selectOption("Result")
  await page
    .getByRole("region", { name: "By result" })
    .getByRole("button", { name: "success", exact: true })
    .click()
  await page.getByRole("list", { name: "Filters" }).getByText("Result is success").waitFor()
  expect(page.url()).toContain("result%3Asuccess")
  await click("Remove the filter Result is success")
  await page.getByLabel("Sequence id").fill("seq_nothing")
  await click("Find the sequence")
  await dialog().getByText("Cannot").waitFor()
  await click("Close")
})

test("the reference shows every endpoint and tries one with the session", async () => {
  await page.goto(`${server.url}/docs`)
  const article = page.getByRole("article", { name: "Who is signed in" })
  await article.getByRole("button").first().click()
  await article.getByRole("button", { name: "Try it" }).click()
  await article.getByRole("button", { name: "Send" }).click()
  expect(await article.getByLabel("Answer body").textContent()).toContain("ada@example.com")
  expect(await problems()).toEqual([])
  expect(complaints).toEqual([])
})

test("the jump list goes anywhere by keyboard", async () => {
  await open("settings")
  await page.keyboard.press("Control+k")
  await page.getByLabel("Page or action").fill("rotate")
  await page.keyboard.press("Enter")
  await page.getByRole("heading", { name: "API keys", level: 1 }).waitFor()
})

test("an address that leads nowhere is a page that says so", async () => {
  await page.goto(`${server.url}/o/${orgId}/nowhere`)
  await page.getByText("There is no such page").waitFor()
  await page.goto(`${server.url}/o/org_nobody/keys`)
  await page.getByText("This page cannot be shown").waitFor()
})
