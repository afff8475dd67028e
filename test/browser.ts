/** Debian's Chromium under Playwright, for tests and screenshots of the console. Installs it where it is missing. */
import { spawnSync } from "node:child_process"
import { existsSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { type BrowserContext, type BrowserContextOptions, chromium } from "playwright-core"

const named = process.env["UMPIRE_TEST_CHROMIUM"]
const executable = named ?? "/usr/bin/chromium"

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
const installMs = 300_000

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
  const why = named ? "UMPIRE_TEST_CHROMIUM names a file that does not exist" : install()
  if (!existsSync(executable))
    throw new Error(
      `Cannot test the console: ${executable} is missing (${why}); install Debian's package chromium, or name another browser by UMPIRE_TEST_CHROMIUM`,
    )
}

/** Test files that run at once take turns: apt refuses a second one of itself. */
const turn = `flock ${join(tmpdir(), "umpire-chromium.lock")} sh -c`
const steps = "apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium"

/** Answers why there is still none, for the case that there is none. */
function install(): string {
  if (process.getuid?.() !== 0) return "only root may install it"
  process.stderr.write("Installing Chromium for the tests of the console (once)...\n")
  const { status, stderr, error } = spawnSync(
    "sh",
    ["-c", `${turn} '[ -e ${executable} ] || { ${steps}; }'`],
    {
      stdio: ["ignore", "ignore", "pipe"],
      encoding: "utf8",
      timeout: installMs,
    },
  )
  const said = stderr?.trim().split("\n").at(-1)
  return `apt-get ended with ${status ?? error?.message ?? "a signal"}${said ? `: ${said}` : ""}`
}
