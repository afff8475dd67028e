/** A gateway process for fault tests: everything of the product but the model, so that it starts and dies quickly. */
import { openOrganizations } from "../src/store/organization-snapshot.ts"
import { setTimeout as wait } from "node:timers/promises"
import { noProxies } from "../src/base/addresses.ts"
import { createCatalog, type Model } from "../src/base/catalog.ts"
import { systemClock } from "../src/base/clock.ts"
import { Metrics } from "../src/base/telemetry.ts"
import { loadConfig } from "../src/base/config.ts"
import { createIds } from "../src/base/ids.ts"
import { createLog } from "../src/base/log.ts"
import type { Handlers } from "../src/contract/endpoint.ts"
import type { Table } from "../src/contract/table.ts"
import { billingHandlers } from "../src/control/billing/handlers.ts"
import { firstStart } from "../src/control/first-start.ts"
import { createIdempotencyStore } from "../src/control/idempotency.ts"
import { createLocalProvider } from "../src/control/payments/provider.ts"
import { openLastUsed, openPrincipals } from "../src/control/principals.ts"
import { type GenerateEngine, type ScoreEngine, noGenerationUsage } from "../src/engine/engine.ts"
import { classificationHandlers } from "../src/gateway/classify.ts"
import { recordRefusal } from "../src/gateway/metered-call.ts"
import { createBodyReader } from "../src/gateway/openai/body.ts"
import { chatHandler } from "../src/gateway/openai/chat.ts"
import { LiveTraffic } from "../src/gateway/routing/queue.ts"
import { catalogResolver, noGuardrails, routerTo } from "./in-memory-gateway.ts"
import { openBatches } from "../src/main/batches.ts"
import { openContent, openContentCipher } from "../src/main/content.ts"
import { openMoney } from "../src/main/money.ts"
import { createHttp } from "../src/server/http.ts"
import { createRequestLimiter } from "../src/server/access.ts"
import { diskOf } from "../src/store/disk-space.ts"
import { migrate } from "../src/store/migrate.ts"
import { openDatabase } from "../src/store/open.ts"
import { openSharedRateLimiter } from "../src/store/shared-rate-limiter.ts"

const ticksPerToken = 1_000n
const workMs = Number(process.env["TEST_WORK_MS"] ?? 3)

const model = {
  sku: "test",
  kind: "generation",
  description: "",
  developer: null,
  releaseDate: null,
  public: true,
  enabled: true,
  prices: {
    inputTokenTicks: ticksPerToken,
    cachedInputTokenTicks: 0n,
    outputTokenTicks: ticksPerToken,
    millisecondTicks: 0n,
  },
  contextTokensMax: 1_000_000,
  quantization: "F32",
  file: "",
} satisfies Partial<Model> as Model

/** A token per character of the evidence, and an answer after a moment. */
const scorer: Pick<ScoreEngine, "score"> = {
  score: async ({ evidence, branches }, { signal, admit }) => {
    await admit(evidence.length)
    await wait(workMs, undefined, { signal })
    return { margins: new Float64Array(branches.length), inputTokens: evidence.length }
  },
}

/** A token per character of the messages, and as many words as may be written, a moment after one another. */
const generator: Pick<GenerateEngine, "generate"> = {
  async *generate({ messages, outputTokensMax }, { signal, admit, onUsage }) {
    const inputTokens = messages.reduce((sum, { content }) => sum + content.length, 0)
    const most = await admit({ inputTokensMost: inputTokens, outputTokensMost: outputTokensMax ?? 1 })
    onUsage({ ...noGenerationUsage, inputTokens })
    for (let outputTokens = 1; outputTokens <= most; outputTokens++) {
      await wait(workMs, undefined, { signal })
      onUsage({ ...noGenerationUsage, inputTokens, outputTokens })
      yield { kind: "text", text: "word ", logprobs: null }
    }
    yield { kind: "end", reason: "length" }
  },
}

// Only decisions and chats are asked of it.
const router = routerTo({ ...scorer, ...generator })

const config = loadConfig(process.env, process.cwd())
const log = createLog(config.log.level)
const ids = createIds()
const clock = systemClock
const catalog = createCatalog([model])
const database = await openDatabase(config)
await migrate(database)
await firstStart(database, { key: process.env["UMPIRE_BOOTSTRAP_KEY"] }, { clock, ids })
const lastUsed = openLastUsed(database, log)
const organizations = await openOrganizations(database, clock, config.billing.outage_grace_s * 1000)
const principals = await openPrincipals({ organizations, database, clock, lastUsed })
// A store that a busy machine keeps waiting is not away: each gateway would then count on its own.
const answerMsMax = 600_000
const rateLimits = await openSharedRateLimiter({
  database,
  gatewayId: ids.next("gw"),
  clock,
  log,
  answerMsMax,
})
const money = await openMoney({
  organizations,
  config,
  catalog,
  database,
  clock,
  ids,
  log,
  metrics: new Metrics(),
  rateLimits,
  consumers: [],
})
const control = {
  database,
  clock,
  ids,
  invalidate: (change: Parameters<typeof principals.invalidate>[0]) => principals.invalidate(change),
}
const inference = {
  catalog,
  models: catalogResolver(catalog),
  router,
  meter: money.meter,
  clock,
  timeoutMs: config.server.request_timeout_ms,
}
const content = await openContent({
  cipher: await openContentCipher(config, async () => false),
  organizations,
  config,
  database,
  gatewayId: money.journal.gatewayId,
  disk: diskOf(config, clock),
  // No question set redacts here.
  scoring: { ...inference, sets: { find: () => Promise.reject(new Error("there are no sets")) } },
  clock,
  ids,
  log,
})
const asking = {
  ...classificationHandlers({
    ...inference,
    compatibility: { nullDescriptions: false, decisionsGa: false },
    sets: { policyFor: () => Promise.reject(new Error("there are no sets")) },
    content: content.contentLogger,
  }),
  createChatCompletion: chatHandler({
    ...inference,
    ids,
    readBody: createBodyReader(),
    guardrails: noGuardrails,
    content: content.contentLogger,
  }),
}
const batches = await openBatches({
  config,
  database,
  clock,
  ids,
  log,
  liveTraffic: new LiveTraffic(clock, { batchShare: 1 }),
  principals,
  handlers: asking,
  publicUrl: () => "",
})
const http = createHttp({
  // The other endpoints are not called.
  handlers: {
    ...asking,
    ...batches.handlers,
    ...billingHandlers({
      ...control,
      providers: new Map([["local", createLocalProvider()]]),
      spendByTag: async () => [],
      log,
      settle: () => money.settle(),
      publicUrl: () => "",
      seller: { name: "Test", addressLines: [], taxNumber: null, tax: null },
    }),
  } as unknown as Handlers<Table>,
  metrics: new Metrics(),
  gate: principals,
  idempotency: createIdempotencyStore({ ...control, cipher: content.access.cipher }),
  refused: (refusal) => recordRefusal({ meter: money.meter, log }, refusal),
  limiter: createRequestLimiter({ requestsPerMinute: 10_000_000, burst: 10_000_000 }),
  clock,
  ids,
  log,
  trustedProxies: noProxies,
  requestTimeoutMs: config.server.request_timeout_ms,
})
const url = await http.listen("127.0.0.1", config.server.port)
process.stdout.write(`ready on ${url}\n`)
process.once("SIGTERM", () => void close())

async function close(): Promise<void> {
  await http.close(5_000)
  await batches.close()
  await content.close()
  await money.close()
  await rateLimits.close()
  await principals.close()
  await lastUsed.close()
  await database.close()
}
