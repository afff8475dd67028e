/** A server with something to show, and a browser that is signed in to its console. */
import { mkdtempSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { Page } from "playwright-core"
import { type Client, createClient } from "../src/contract/client.ts"
import { operatorOf } from "./operator.ts"
import { type TestServer, startServer } from "./server.ts"

export const owner = { email: "ada@example.com", password: "correct horse battery" } as const

const defaultModel = join(import.meta.dirname, "..", "model", "smollm2-135m-instruct.gguf")

/** Three regions, and a second model that must be asked for. */
const configuration = `
regions:
  - { id: paris, country: FR, latitude: 48.9, longitude: 2.4 }
  - { id: lyon, country: FR, latitude: 45.8, longitude: 4.8 }
  - { id: oregon, country: US, latitude: 45.5, longitude: -122.7 }
models:
  - { sku: umpire-reserved, file: ${defaultModel}, developer: Umpire, public: false }
`

export async function startConsoleServer(
  options: { dataDirectory?: string; env?: Record<string, string> } = {},
): Promise<TestServer> {
  const file = join(mkdtempSync(join(tmpdir(), "umpire-config-")), "umpire.yaml")
  writeFileSync(file, configuration)
  return await startServer({
    ...options,
    env: {
      UMPIRE_CONFIG: file,
      UMPIRE_BOOTSTRAP_EMAIL: owner.email,
      UMPIRE_BOOTSTRAP_PASSWORD: owner.password,
      ...options.env,
    },
  })
}

/** The API with the rights of the owner, and the session that gives them. */
export async function ownerOf({ url }: TestServer): Promise<{ api: Client; token: string }> {
  const { token } = await createClient(url, {}).createSession({ body: owner })
  return { api: createClient(url, { authorization: `Bearer ${token}` }), token }
}

/** Another organization of the owner's, by the operator's hand; answers its id. */
export async function makeOrganization(server: TestServer, name: string): Promise<string> {
  const client = await operatorOf(server)
  return (await client.openOrganization({ body: { name, owner: owner.email } })).id
}

export async function signIn(page: Page, url: string): Promise<string> {
  await page.goto(url)
  await page.getByLabel("Email").fill(owner.email)
  await page.getByLabel("Password").fill(owner.password)
  await page.getByRole("button", { name: "Sign in" }).click()
  await page.getByRole("heading", { name: "Playground" }).waitFor()
  return /\/o\/([^/]+)/.exec(page.url())?.[1] ?? ""
}

/** Every page of an organization, by its heading. */
export const consolePages = [
  ["playground", "Playground"],
  ["start", "Quick start"],
  ["chat", "Chat"],
  ["evaluate", "Evaluate"],
  ["batches", "Batches"],
  ["sets", "Question sets"],
  ["review", "Review"],
  ["analytics", "Analytics"],
  ["requests", "Requests"],
  ["alerts", "Alerts"],
  ["billing", "Billing"],
  ["audit", "Audit log"],
  ["keys", "API keys"],
  ["models", "Models"],
  ["members", "Members"],
  ["guardrails", "Guardrails"],
  ["routing", "Routing"],
  ["identity", "Workload identity"],
  ["settings", "Settings"],
] as const
