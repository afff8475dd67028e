/** The entry: hands each command of the CLI what it needs of the other layers. */
import { join } from "node:path"
import { systemClock } from "./base/clock.ts"
import { loadConfig } from "./base/config.ts"
import { createIds } from "./base/ids.ts"
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
import { analyticsOperations } from "./control/analytics/operations.ts"
import { billingOperations } from "./control/operations/billing.ts"
import { identityOperations } from "./control/operations/identity.ts"
import { operations } from "./control/operations.ts"
import { Fault } from "./contract/errors.ts"
import { openEventsOf } from "./main/analytics.ts"
import { loadCatalog, toModel } from "./main/catalog.ts"
import { modelOperations } from "./main/models.ts"
import { examine } from "./main/checks.ts"
import { openIdleIdentity } from "./main/identity.ts"
import { inspectJournal } from "./main/billing.ts"
import { journalDirectory } from "./main/money.ts"
import { startUmpire } from "./main/umpire.ts"
import { version } from "./main/version.ts"
import { startWorker } from "./main/worker.ts"
import { operatorAddress } from "./server/operator-socket.ts"
import { migrate } from "./store/migrate.ts"
import { openDatabase } from "./store/open.ts"

const commands: Commands = {
  serve: serve(async (config, bootstrap, log) => {
    const { catalog, ...umpire } = await startUmpire(config, bootstrap, log)
    return { ...umpire, modelSku: catalog.fallback.sku }
  }),
  worker: worker(startWorker),
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
  doctor: doctor(examine),
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
    const database = await openDatabase({
      url: config.database.url,
      directory: join(config.data_dir, "database"),
    })
    const events = openEventsOf(config)
    const analyticsParts = {
      events,
      retentionDays: config.analytics.retention_days,
      // What the journal of a server that does not run still holds is kept when it runs again.
      settle: async () => undefined,
    }
    try {
      await migrate(database)
      const parts = {
        database,
        clock: systemClock,
        ids: createIds(),
        // Running gateways are told by the database.
        forget: () => undefined,
        catalog: async () => await loadCatalog(config.models, config.data_dir),
        journalState: async () => await inspectJournal(journalDirectory(config.data_dir), database),
      }
      const run = {
        ...operations(parts),
        ...modelOperations({
          dataDirectory: config.data_dir,
          catalog: parts.catalog,
          read: toModel,
          // The next start finds it in the data directory.
          added: () => undefined,
        }),
        ...billingOperations(parts),
        ...analyticsOperations({ ...parts, ...analyticsParts }),
        ...identityOperations(parts, async () => await openIdleIdentity(config, parts)),
      }[operation]
      if (!run) throw new Fault("invalid_request", `Cannot run ${operation}: there is no such operation`)
      return await run(input)
    } finally {
      await events?.close()
      await database.close()
    }
  }
}
