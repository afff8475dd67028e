/** `umpire serve`: runs everything in this process and its children until it is told to stop. */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { loadConfig, unknownVariables } from "../base/config.ts"
import { createLog } from "../base/log.ts"
import { type CliContext, type Command, flagOption, valueOption } from "./command.ts"
import { text } from "./command.ts"
import { runUntilStopped } from "./run-until-stopped.ts"
import { drawWelcome, openBrowser, welcomeFile } from "./welcome.ts"

/** What serving needs of the composition root. */
interface Running {
  readonly url: string
  readonly modelSku: string
  readonly first: {
    readonly email: string
    readonly keyValue: string | null
    /** Signs the first user in, once. */
    readonly consoleLink: string | null
  } | null
  close(): Promise<void>
}

type Start = (
  config: ReturnType<typeof loadConfig>,
  bootstrap: Bootstrap,
  running: { readonly log: ReturnType<typeof createLog>; readonly progress: (step: string) => void },
) => Promise<Running>

interface Bootstrap {
  readonly key: string | undefined
  readonly email: string | undefined
  readonly password: string | undefined
}

export const serve = (start: Start): Command => ({
  usage: ["umpire serve [--config umpire.yaml] [--host 127.0.0.1] [--port 8484] [--no-open]"],
  options: {
    config: valueOption("the YAML file to read (UMPIRE_CONFIG)", "c"),
    host: valueOption("address to listen on (UMPIRE_HOST)"),
    port: valueOption("port to listen on (UMPIRE_PORT); 0 picks a free one", "p"),
    "data-dir": valueOption("where the embedded parts keep their data (UMPIRE_DATA_DIR)"),
    "no-open": flagOption("do not open the console in a browser at the first start"),
  },
  run: async (context) => await run(start, context),
})

async function run(start: Start, context: CliContext): Promise<number> {
  const environment = withFlags(context)
  const config = loadConfig(environment, context.workingDirectory)
  const log = createLog(config.log.level)
  const unknown = unknownVariables(environment, context.workingDirectory)
  if (unknown.length > 0) log.warn({ variables: unknown }, "Ignored variables that are not settings")
  const { stdout, stderr } = context
  const isAttended = stdout.isTTY === true && context.stdin.isTTY === true
  const progress = (step: string): void => void (isAttended && stderr.write(`${step}...\n`))
  const announce = (running: Running): void => {
    const consoleUrl = consoleUrlOf(running)
    if (running.first?.keyValue) {
      const welcome = `\nThis is a new installation. ${drawWelcome({ ...running, keyValue: running.first.keyValue, consoleUrl })}`
      stdout.write(isAttended ? welcome : keptAside(config.data_dir, welcome))
    }
    if (consoleUrl !== null && isAttended && context.values["no-open"] !== true)
      openBrowser(consoleUrl, context.environment)
    stdout.write(
      `Umpire is ready on ${running.url} (OpenAPI at ${running.url}/openapi.json, data in ${config.data_dir})\n`,
    )
    log.info({ url: running.url, data_dir: config.data_dir }, "ready")
  }
  const bootstrap = bootstrapOf(environment)
  return await runUntilStopped(log, {
    start: async () => await start(config, bootstrap, { log, progress }),
    announce,
    closeMsMax: closeMsMax(config.server),
  })
}

/** Without a terminal, standard output becomes a log, which more people read than may have a key. */
function keptAside(dataDirectory: string, welcome: string): string {
  const file = join(dataDirectory, welcomeFile)
  writeFileSync(file, welcome, { mode: 0o600 })
  return `This is a new installation: its first API key is in ${file}, which only its owner can read. Delete it once it is kept elsewhere.\n`
}

/** Of the time that requests in flight get to end, and to `drain`: the rest is for the store. */
const drainMsMax = 5_000
const storeMsMax = 5_000

const closeMsMax = ({
  drain_ms,
  shutdown_ms,
}: {
  drain_ms?: number | undefined
  shutdown_ms: number
}): number => (drain_ms ?? drainMsMax) + shutdown_ms + storeMsMax

/** In the fragment, which browsers do not send: it reaches no log of a proxy. */
const consoleUrlOf = ({ url, first }: Running): string | null =>
  first?.consoleLink ? `${url}/sign-in#link=${first.consoleLink}` : null

function withFlags(context: CliContext): Record<string, string | undefined> {
  const environment: Record<string, string | undefined> = { ...context.environment }
  const flags = {
    config: "UMPIRE_CONFIG",
    host: "UMPIRE_HOST",
    port: "UMPIRE_PORT",
    "data-dir": "UMPIRE_DATA_DIR",
  }
  for (const [flag, variable] of Object.entries(flags))
    environment[variable] = text(context, flag) ?? environment[variable]
  return environment
}

function bootstrapOf(environment: Readonly<Record<string, string | undefined>>): Bootstrap {
  return {
    key: environment["UMPIRE_BOOTSTRAP_KEY"] || undefined,
    email: environment["UMPIRE_BOOTSTRAP_EMAIL"] || undefined,
    password: environment["UMPIRE_BOOTSTRAP_PASSWORD"] || undefined,
  }
}
