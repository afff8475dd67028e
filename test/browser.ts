/** Debian's Chromium under Playwright, for tests and screenshots of the console. Installs it where it is missing. */
import { execFile } from "node:child_process"
import { existsSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { type BrowserContext, type BrowserContextOptions, type Page, chromium } from "playwright-core"
import { installMs, keptFolder } from "./run-folder.ts"

const named = process.env["UMPIRE_TEST_CHROMIUM"]
/** The shell has no window and takes a quarter less processor time for the same pages. */
const browsers = ["/usr/bin/chromium-headless-shell", "/usr/bin/chromium"]
const findBrowser = (): string | undefined => (named ? [named] : browsers).find((file) => existsSync(file))

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
const patienceMs = 60_000

export interface Browser {
  readonly context: BrowserContext
  /** A page of somebody else: another context, which shares nothing with the first. */
  openElsewhere(): Promise<Page>
  close(): Promise<void>
}

export async function openBrowser(options: BrowserContextOptions = {}): Promise<Browser> {
  const executablePath = findBrowser() ?? (await installBrowser())
  const profile = mkdtempSync(join(tmpdir(), "umpire-chromium-"))
  const context = await chromium.launchPersistentContext(profile, {
    executablePath,
    headless: true,
    timeout: patienceMs,
    args: flags,
    viewport: { width: 1280, height: 860 },
    reducedMotion: "reduce",
    ...options,
  })
  context.setDefaultTimeout(patienceMs)
  return {
    context,
    openElsewhere: async () => {
      const other = await context.browser()?.newContext()
      if (!other) throw new Error("Cannot open another context: the browser is gone")
      other.setDefaultTimeout(patienceMs)
      return await other.newPage()
    },
    close: async () => {
      await context.close()
      rmSync(profile, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}

/** A missing browser is installed or is an error: a test that cannot run must not look like one that passed. */
async function installBrowser(): Promise<string> {
  const why = named ? "UMPIRE_TEST_CHROMIUM names a file that does not exist" : await install()
  const found = findBrowser()
  if (found) return found
  throw new Error(
    `Cannot test the console: there is no browser (${why}); install Debian's package chromium-headless-shell or chromium, or name another by UMPIRE_TEST_CHROMIUM`,
  )
}

/** Test files that run at once take turns: apt refuses a second one of itself. */
const turn = `flock ${join(keptFolder(), "umpire-chromium.lock")} sh -c`
const get = "DEBIAN_FRONTEND=noninteractive apt-get install -y -qq"
const steps = `apt-get update -qq && { ${get} chromium-headless-shell fonts-liberation || ${get} chromium; }`

/** Answers why there is still none, for the case that there is none. */
async function install(): Promise<string> {
  if (process.getuid?.() !== 0) return "only root may install it"
  process.stderr.write("Installing Chromium for the tests of the console (once)...\n")
  try {
    // Not synchronously: a worker that does not answer for a minute is taken for dead.
    await promisify(execFile)("sh", ["-c", `${turn} '[ -e ${browsers.join(" -o -e ")} ] || { ${steps}; }'`], {
      timeout: installMs,
    })
    return "apt-get ended with 0"
  } catch (error) {
    // What execFile adds to its errors.
    const { message, stderr = "" } = error as Error & { stderr?: string }
    return `apt-get failed: ${stderr.trim().split("\n").at(-1) || message}`
  }
}
