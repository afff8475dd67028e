/** `umpire serve`: runs everything in this process and its children until it is told to stop. */
import { loadConfig } from "../base/config.ts"
import { createLog } from "../base/log.ts"
import type { CliContext, Command } from "./command.ts"
import { text } from "./command.ts"
import { runUntilStopped } from "./run-until-stopped.ts"

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
  log: ReturnType<typeof createLog>,
) => Promise<Running>

interface Bootstrap {
  readonly key: string | undefined
  readonly email: string | undefined
  readonly password: string | undefined
}

export const serve = (start: Start): Command => ({
  usage: ["umpire serve [--config umpire.yaml] [--host 127.0.0.1] [--port 8484]"],
  options: {
    config: { type: "string", short: "c" },
    host: { type: "string" },
    port: { type: "string", short: "p" },
    "data-dir": { type: "string" },
  },
  optionHelp: {
    config: "the YAML file to read (UMPIRE_CONFIG)",
    host: "address to listen on (UMPIRE_HOST)",
    port: "port to listen on (UMPIRE_PORT)",
    "data-dir": "where the embedded parts keep their data (UMPIRE_DATA_DIR)",
  },
  run: async (context) => await run(start, context),
})

async function run(start: Start, context: CliContext): Promise<number> {
  const environment = withFlags(context)
  const config = loadConfig(environment, context.workingDirectory)
  const log = createLog(config.log.level)
  const { stdout } = context
  const announce = (running: Running): void => {
    if (running.first) stdout.write(welcome(running))
    stdout.write(
      `Umpire is ready on ${running.url} (OpenAPI at ${running.url}/openapi.json, data in ${config.data_dir})\n`,
    )
  }
  return await runUntilStopped(log, async () => await start(config, bootstrapOf(environment), log), announce)
}

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

/** Shown once. The request is ready to paste, and answers within seconds. */
function welcome({ url, modelSku, first }: Running): string {
  if (!first?.keyValue) return ""
  const body = {
    model: modelSku,
    input: "The parcel arrived two weeks late and the box was crushed. I want my money back.",
    questions: [
      { type: "predicate", name: "refund", instructions: "Does the customer ask for a refund?" },
      {
        type: "choice",
        name: "topic",
        instructions: "What is the complaint about?",
        choices: [{ value: "delivery" }, { value: "billing" }, { value: "password" }],
      },
    ],
  }
  return [
    "",
    "This is a new installation. Your API key (shown only now):",
    "",
    `  ${first.keyValue}`,
    "",
    ...(first.consoleLink === null
      ? []
      : // In the fragment, which browsers do not send: it reaches no log of a proxy.
        ["The console (this link signs you in once):", "", `  ${url}/sign-in#link=${first.consoleLink}`, ""]),
    "Try it:",
    "",
    `curl -s ${url}/v1/decisions \\`,
    `  -H 'Authorization: Bearer ${first.keyValue}' \\`,
    "  -H 'Content-Type: application/json' \\",
    `  -d '${JSON.stringify(body)}'`,
    "",
    "",
  ].join("\n")
}
