/**
 * The entry: hands each command of the CLI what it needs of the other layers. The server and the store are loaded only
 * by the commands that use them, so that the others answer at once.
 */
import { loadConfig } from "./base/config.ts"
import { access } from "./cli/access.ts"
import { analytics } from "./cli/analytics.ts"
import { ask } from "./cli/ask.ts"
import { billing } from "./cli/billing.ts"
import { audit } from "./cli/audit.ts"
import type { CliContext } from "./cli/command.ts"
import { doctor } from "./cli/doctor.ts"
import { evaluation } from "./cli/eval.ts"
import { identity } from "./cli/identity.ts"
import { keys } from "./cli/keys.ts"
import { models } from "./cli/models.ts"
import { type Operate, operateOverSocket } from "./cli/operator.ts"
import { orgs } from "./cli/orgs.ts"
import { type Commands, runCli } from "./cli/run.ts"
import { serve } from "./cli/serve.ts"
import { status } from "./cli/status.ts"
import { worker } from "./cli/worker.ts"
import { users } from "./cli/users.ts"
import { Fault } from "./contract/errors.ts"
import { version } from "./main/version.ts"
import { operatorAddress } from "./server/operator-socket.ts"

const commands: Commands = {
  serve: serve(async (config, bootstrap, log) => {
    const { startUmpire } = await import("./main/umpire.ts")
    const { catalog, ...umpire } = await startUmpire(config, bootstrap, log)
    return { ...umpire, modelSku: catalog.fallback.sku }
  }),
  worker: worker(async (...given) => {
    const { startWorker } = await import("./main/worker.ts")
    return await startWorker(...given)
  }),
  ask,
  eval: evaluation(operator),
  models: models(operator),
  keys: keys(operator),
  orgs: orgs(operator),
  users: users(operator),
  access: access(operator),
  audit: audit(operator),
  identity: identity(operator),
  billing: billing(operator),
  analytics: analytics(operator),
  status: status(operator),
  doctor: doctor(async (context) => {
    const { examine } = await import("./main/checks.ts")
    return await examine(context)
  }),
}

export async function main(argv: readonly string[]): Promise<number> {
  const { stdout, stderr, stdin, env } = process
  return await runCli(commands, version, argv, {
    stdout,
    stderr,
    stdin,
    environment: env,
    workingDirectory: process.cwd(),
  })
}

/** What only a server that runs can answer. */
const ofRunningServer = ["status", "classification.margins"]

/** An operator's command goes to the running server if there is one, for it holds the embedded store. */
function operator({ environment, workingDirectory }: CliContext): Operate {
  const config = loadConfig(environment, workingDirectory)
  return async (operation, input) => {
    const answered = await operateOverSocket(operatorAddress(config.data_dir), operation, input)
    if (answered) return answered.result
    if (ofRunningServer.includes(operation))
      throw new Fault(
        "not_ready",
        "Cannot run the command: no server runs on this data directory; umpire serve starts one",
      )
    const { operateOffline } = await import("./main/offline.ts")
    return await operateOffline(config, operation, input)
  }
}
