/** Takes a picture of every page of the console, light and dark, on a desktop and on a phone, into test/out/screenshots. */
import { mkdirSync } from "node:fs"
import { join } from "node:path"
import type { Page } from "playwright-core"
import { openBrowser } from "../test/browser.ts"
import { clientOf, consolePages, signIn, startConsoleServer } from "../test/console.ts"
import type { TestServer } from "../test/server.ts"
import { buildConsole } from "./build-console.mjs"

const folder = join(import.meta.dirname, "..", "test", "out", "screenshots")
const only = process.argv.slice(2)
const sizes = { desktop: { width: 1280, height: 860 }, phone: { width: 390, height: 844 } } as const

/** Brings a page to where there is something to see. */
const prepare: Partial<Record<string, (page: Page) => Promise<void>>> = {
  playground: async (page) => {
    await page.getByRole("button", { name: "Decide" }).click()
    await page.getByRole("group", { name: "Answer to question 3" }).waitFor()
  },
  evaluate: async (page) => {
    await page.getByRole("button", { name: "Use a sample" }).click()
    await page.getByRole("button", { name: /^Evaluate/ }).click()
    await page.getByText("Done: 8 of 8 rows").waitFor()
  },
  chat: async (page) => {
    await page.getByText("Instructions and settings").click()
    await page.getByLabel("Most tokens").fill("24")
    await page.getByText("Instructions and settings").click()
    await page.getByLabel("Message").fill("Write one sentence about the sea.")
    await page.getByRole("button", { name: "Send" }).click()
    await page.getByText(/tokens in/).waitFor({ timeout: 60_000 })
  },
}

buildConsole()
mkdirSync(folder, { recursive: true })
const server = await startConsoleServer()
const browser = await openBrowser({ permissions: ["clipboard-read", "clipboard-write"] })
try {
  const page = browser.context.pages()[0] ?? (await browser.context.newPage())
  if (only.length === 0)
    await everySize(page, "sign-in", async () => void (await page.goto(`${server.url}/sign-in`)))
  const orgId = await signIn(page, server.url)
  await furnish(server, orgId)
  for (const [path, heading] of consolePages) {
    if (only.length > 0 && !only.includes(path)) continue
    await everySize(page, path, async () => {
      await page.goto(`${server.url}/o/${orgId}/${path}`)
      await page.getByRole("heading", { name: heading, level: 1 }).waitFor()
      await prepare[path]?.(page)
    })
  }
  if (only.length === 0 || only.includes("docs"))
    await everySize(page, "docs", async () => {
      // The same address again would not load the page again.
      await page.goto("about:blank")
      await page.goto(`${server.url}/docs#createDecision`)
      await page.getByRole("button", { name: "Try it" }).first().click()
    })
} finally {
  await browser.close()
  await server.stop()
}

async function everySize(page: Page, name: string, open: () => Promise<void>): Promise<void> {
  for (const [size, viewport] of Object.entries(sizes)) {
    await page.setViewportSize(viewport)
    await open()
    await page.waitForLoadState("networkidle")
    for (const theme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme: theme })
      await page.screenshot({
        path: join(folder, `${name}-${size}-${theme}.png`),
        fullPage: size === "phone",
        animations: "disabled",
      })
      console.log(`${name}-${size}-${theme}.png`)
    }
  }
}

/** Keys, people, providers and requests, so that the pages are not all empty. */
async function furnish(testServer: TestServer, org_id: string): Promise<void> {
  const api = clientOf(testServer)
  const params = { org_id }
  await api.createApiKey({ params, body: { name: "production moderation", permissions: ["inference"] } })
  await api.createApiKey({
    params,
    body: {
      name: "dashboards",
      permissions: ["api-read"],
      expires_at: new Date(Date.now() + 30 * 86_400_000).toISOString(),
    },
  })
  await api.createInvitation({ params, body: { email: "grace@example.com", role: "member" } })
  await api.createWorkloadIdentityProvider({
    params,
    body: {
      name: "GitHub Actions",
      config: {
        type: "oidc",
        issuer_uri: "https://token.actions.githubusercontent.com",
        allowed_audiences: ["https://umpire.example.com"],
        jwks: null,
      },
      attribute_condition: 'assertion.repository_owner == "acme"',
      attribute_transformations: { team: "assertion.repository" },
      authorization_rules: [
        { condition: 'attribute.team == "acme/search"', permissions: ["inference", "api-read"] },
        { condition: "true", permissions: ["inference"] },
      ],
    },
  })
  for (const input of ["The lamp is broken.", "Thank you!", "Where is my parcel?"])
    await api.createDecision({
      body: {
        model: "umpire-nano",
        input,
        questions: [{ type: "predicate", instructions: "Is this a complaint?" }],
      },
    })
  await api
    .createDecision({ body: { model: "no-such-model", input: "a", questions: [] } })
    .catch(() => undefined)
}
