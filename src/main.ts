/**
 * The entry: the table of commands, and what each needs of the other layers. A command loads its own code only, so that
 * the small ones answer at once.
 */
import type { CliContext } from "./cli/command.ts"
import type { Operator } from "./cli/operator.ts"
import { type Commands, runCli } from "./cli/run.ts"
import { version } from "./main/package-files.ts"

const commands: Commands = {
  serve: {
    summary: "run the server; what umpire does without a command",
    load: async () =>
      (await import("./cli/serve.ts")).serve(async (config, ...rest) => {
        const { checkPort } = await import("./server/port.ts")
        await checkPort(config.server.host, config.server.port)
        const { startUmpire } = await import("./main/umpire.ts")
        const { catalog, ...umpire } = await startUmpire(config, ...rest)
        return { ...umpire, modelSku: catalog.fallback.sku }
      }),
  },
  worker: {
    summary: "run models for gateways on other machines",
    load: async () =>
      (await import("./cli/worker.ts")).worker(async (...given) => {
        const { checkPort } = await import("./server/port.ts")
        await checkPort(given[1].host, given[1].port)
        const { startWorker } = await import("./main/worker.ts")
        return await startWorker(...given)
      }),
  },
  ask: {
    summary: "ask typed questions about a text",
    load: async () => (await import("./cli/ask.ts")).ask,
  },
  label: {
    summary: "answer questions about every row of a table",
    load: async () =>
      (await import("./cli/label.ts")).label(async (context, model) => {
        const { openLocalDecisions } = await import("./main/local-decisions.ts")
        return await openLocalDecisions(context, model)
      }),
  },
  batches: {
    summary: "run a JSONL file of requests asynchronously and download the answers",
    load: async () => (await import("./cli/batches.ts")).batches,
  },
  mcp: {
    summary: "serve decisions and question sets to an agent over standard input and output (MCP)",
    load: async () => (await import("./cli/mcp.ts")).mcp,
  },
  eval: {
    summary: "measure a model on labelled questions",
    load: async () => (await import("./cli/eval.ts")).evaluation,
  },
  sets: {
    summary: "keep question sets as files, teach and check them",
    load: async () => (await import("./cli/sets.ts")).sets,
  },
  distil: {
    summary: "let a question set learn from a larger model, within a budget",
    load: async () => (await import("./cli/distil.ts")).distil,
  },
  guardrails: {
    summary: "check what models read and write by question sets",
    load: async () => (await import("./cli/guardrails.ts")).guardrails,
  },
  requests: {
    summary: "list requests by what is known of them, and follow them",
    load: async () => (await import("./cli/requests.ts")).requests,
  },
  alerts: {
    summary: "list, create, delete and test alert rules",
    load: async () => (await import("./cli/alerts.ts")).alerts,
  },
  webhooks: {
    summary: "list, add, test and remove webhooks; see and repeat deliveries",
    load: async () => (await import("./cli/webhooks.ts")).webhooks,
  },
  models: {
    summary: "list models, and add them from a file, an address or Hugging Face",
    load: async () => (await import("./cli/models.ts")).models(operator),
  },
  keys: {
    summary: "create, list and revoke API keys; show how to begin",
    load: async () => (await import("./cli/keys.ts")).keys(operator),
  },
  budgets: {
    summary: "limit what is spent on requests with a tag",
    load: async () => (await import("./cli/budgets.ts")).budgets(operator),
  },
  orgs: {
    summary: "create, list, limit and delete organizations",
    load: async () => (await import("./cli/orgs.ts")).orgs(operator),
  },
  users: {
    summary: "list users, make sign-in links and reset passwords",
    load: async () => (await import("./cli/users.ts")).users(operator),
  },
  access: {
    summary: "grant or deny organizations the models that are not public",
    load: async () => (await import("./cli/access.ts")).access(operator),
  },
  audit: {
    summary: "verify the audit log",
    load: async () => (await import("./cli/audit.ts")).audit(operator),
  },
  identity: {
    summary: "list workload identity providers and test tokens and certificates with them",
    load: async () => (await import("./cli/identity.ts")).identity(operator),
  },
  billing: {
    summary: "credit and adjust billing accounts, show and verify their ledgers",
    load: async () => (await import("./cli/billing.ts")).billing(operator),
  },
  analytics: {
    summary: "import, export, prune and verify the events behind analytics",
    load: async () => (await import("./cli/analytics.ts")).analytics(operator),
  },
  workers: {
    summary: "drain a worker of all gateways, and put it back into service",
    load: async () => (await import("./cli/workers.ts")).workers(operator),
  },
  status: {
    summary: "show gateways, regions, workers, queues, leases and journals of the installation",
    load: async () => (await import("./cli/status.ts")).status(operator),
  },
  fleet: {
    summary: "show the installation on a page of this machine, and drain workers there",
    load: async () =>
      (await import("./cli/fleet.ts")).fleet(operator, async (port, client) => {
        const { openFleetPage } = await import("./server/fleet-page.ts")
        const { loadPages } = await import("./server/pages.ts")
        const { consoleDirectory } = await import("./main/package-files.ts")
        return await openFleetPage({
          pages: await loadPages(consoleDirectory, { entry: "/fleet.html" }),
          port,
          client,
        })
      }),
  },
  backup: {
    summary: "write everything that is kept into one file, while the server runs",
    load: async () => (await import("./cli/backup.ts")).backup(operator),
  },
  restore: {
    summary: "fill an empty data directory and database from a backup",
    load: async () =>
      (await import("./cli/backup.ts")).restore(async (config, file) => {
        const { restoreBackup } = await import("./main/backup.ts")
        return await restoreBackup(config, file)
      }),
  },
  connect: {
    summary: "point a client (Codex, Claude Code, OpenAI's libraries) at this server",
    load: async () => (await import("./cli/connect.ts")).connect,
  },
  gpu: {
    summary: "say what GPU there is, and bring the libraries that use it",
    load: async () => (await import("./cli/gpu.ts")).gpu,
  },
  service: {
    summary: "run the server as a service of systemd",
    load: async () => (await import("./cli/service.ts")).service,
  },
  doctor: {
    summary: "check this machine and say what to fix",
    load: async () =>
      (await import("./cli/doctor.ts")).doctor(async (context) => {
        const { examine } = await import("./main/doctor-checks.ts")
        return await examine(context)
      }),
  },
}

export async function main(argv: readonly string[]): Promise<number> {
  const { stdout, stderr, stdin, env } = process
  return await runCli(commands, version, {
    argv,
    surroundings: {
      stdout,
      stderr,
      stdin,
      environment: env,
      workingDirectory: process.cwd(),
    },
  })
}

/** The running server if there is one, for it holds the embedded store; else the store itself. */
async function operator({ environment, workingDirectory }: CliContext): Promise<Operator> {
  const { loadConfig } = await import("./base/config.ts")
  const { connectOperator } = await import("./cli/operator.ts")
  const { operatorAddress } = await import("./server/operator-socket.ts")
  const config = loadConfig(environment, workingDirectory)
  const running = await connectOperator(operatorAddress(config.data_dir))
  if (running) return running
  const { openOffline } = await import("./main/offline.ts")
  return openOffline(config)
}
