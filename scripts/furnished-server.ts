/** A server with a month of a small company's life in it, and a browser before it, for pictures of the console. */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { Page } from "playwright-core"
import { openBrowser } from "../test/browser.ts"
import { startConsoleServer } from "../test/console.ts"
import { prepareDirectory } from "../test/database.ts"
import { startReceiver } from "../test/webhook-receiver.ts"
import { buildConsole } from "./build-console.mjs"
import { charge, past, remember, settle } from "./furnish.ts"

/** The page is not signed in yet. */
export async function withCompany(take: (page: Page, url: string) => Promise<void>): Promise<void> {
  const dataDirectory = mkdtempSync(join(tmpdir(), "umpire-screenshots-"))
  const receiver = await startReceiver()
  const env = { UMPIRE_WEBHOOKS_ALLOW_PRIVATE: "true", UMPIRE_ENGINE_DECISION_MODEL: "umpire-decide" }
  buildConsole()
  await prepareDirectory(join(dataDirectory, "database"))
  let server = await startConsoleServer({ dataDirectory, env })
  const browser = await openBrowser({ permissions: ["clipboard-read", "clipboard-write"] })
  try {
    const company = await settle(server, receiver.url)
    const records = past(company, Date.now())
    await server.stop()
    await charge(dataDirectory, records, company.set)
    server = await startConsoleServer({ dataDirectory, env })
    await remember(server, records)
    await take(browser.context.pages()[0] ?? (await browser.context.newPage()), server.url)
  } finally {
    await browser.close()
    await server.stop()
    await receiver.close()
    rmSync(dataDirectory, { recursive: true, force: true })
  }
}
