/** `umpire worker`: runs models for gateways elsewhere, without a store of its own, until it is told to stop. */
import { loadConfig } from "../base/config.ts"
import { createLog } from "../base/log.ts"
import { type CliContext, type Command, UsageError, text, valueOption } from "./command.ts"
import { runUntilStopped } from "./run-until-stopped.ts"

/** What the command needs of the composition root. */
type StartWorker = (
  config: ReturnType<typeof loadConfig>,
  options: { readonly host: string; readonly port: number; readonly key: string | undefined },
  log: ReturnType<typeof createLog>,
) => Promise<{ readonly url: string; close(): Promise<void> }>

const portDefault = "8485"
/** For its processes to end, after the work in flight. */
const closeMs = 5_000
const portMax = 65_535

export const worker = (start: StartWorker): Command => ({
  usage: ["umpire worker [--config umpire.yaml] [--host 127.0.0.1] [--port 8485]"],
  options: {
    config: valueOption("the YAML file to read (UMPIRE_CONFIG)", "c"),
    host: valueOption("address to listen on; other than this machine needs UMPIRE_WORKER_KEY"),
    port: valueOption("port to listen on; 0 picks a free one", "p"),
  },
  run: async (context) => await run(start, context),
})

async function run(start: StartWorker, context: CliContext): Promise<number> {
  const { environment, workingDirectory, stdout } = context
  const file = text(context, "config") ?? environment["UMPIRE_CONFIG"]
  // Where it listens is said by options alone; Kubernetes sets UMPIRE_PORT for a Service called umpire.
  const own = { ...environment, UMPIRE_CONFIG: file, UMPIRE_PORT: undefined, UMPIRE_HOST: undefined }
  const config = loadConfig(own, workingDirectory)
  const log = createLog(config.log.level)
  const key = environment["UMPIRE_WORKER_KEY"] || undefined
  const address = { host: text(context, "host") ?? "127.0.0.1", port: portOf(context), key }
  return await runUntilStopped(log, {
    start: async () => await start(config, address, log),
    announce: ({ url }) => {
      stdout.write(`Umpire worker is ready on ${url}\n`)
      log.info({ url }, "ready")
    },
    closeMsMax: config.server.shutdown_ms + closeMs,
  })
}

function portOf(context: CliContext): number {
  const port = Number(text(context, "port") ?? portDefault)
  if (Number.isInteger(port) && port >= 0 && port <= portMax) return port
  throw new UsageError("--port needs a number from 0 to 65535")
}
