/** Debian's Chromium under Playwright, for tests and screenshots of the console. Installs it where it is missing. */
import { spawnSync } from "node:child_process"
import { existsSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { type BrowserContext, type BrowserContextOptions, chromium } from "playwright-core"

const executable = process.env["UMPIRE_TEST_CHROMIUM"] ?? "/usr/bin/chromium"

const flags = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
]

/** How long a thing may take to appear on a busy machine. */
const patienceMs = 20_000

export interface Browser {
  readonly context: BrowserContext
  close(): Promise<void>
}

export async function openBrowser(options: BrowserContextOptions = {}): Promise<Browser> {
  ensureChromium()
  const profile = mkdtempSync(join(tmpdir(), "umpire-chromium-"))
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: executable,
    headless: true,
    args: flags,
    viewport: { width: 1280, height: 860 },
    reducedMotion: "reduce",
    ...options,
  })
  context.setDefaultTimeout(patienceMs)
  return {
    context,
    close: async () => {
      await context.close()
      rmSync(profile, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}

/** A missing browser is installed or is an error: a test that cannot run must not look like one that passed. */
function ensureChromium(): void {
  if (existsSync(executable)) return
  const install = "apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium"
  if (process.getuid?.() === 0) spawnSync("sh", ["-c", install], { stdio: "ignore" })
  if (!existsSync(executable))
    throw new Error(
      `Cannot test the console: ${executable} is missing; run apt-get install chromium, or name another by UMPIRE_TEST_CHROMIUM`,
    )
}
