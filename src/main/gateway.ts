/** What runs requests: metering, routing and the engines behind it, question sets, content and the inference APIs. */
import type { anthropicEndpoints } from "../contract/anthropic/messages.ts"
import type { Handlers } from "../contract/endpoint.ts"
import type { conversationEndpoints } from "../contract/openai/conversations.ts"
import { inferenceEndpoints } from "../contract/openai/endpoints.ts"
import type { storedChatEndpoints } from "../contract/openai/stored-chats.ts"
import type { ContentStates } from "../control/analytics/handlers.ts"
import { anthropicHandlers } from "../gateway/anthropic/messages.ts"
import { type CascadeDays, startCascadeDays } from "../gateway/cascade-days.ts"
import type { ContentLogger } from "../gateway/content/content-logger.ts"
import { createGuardrails, type Guardrails } from "../gateway/guardrails/guardrails.ts"
import type { Meter } from "../gateway/meter.ts"
import { createBodyReader } from "../gateway/openai/body.ts"
import { Conversations, conversationHandlers } from "../gateway/openai/conversations.ts"
import { openaiHandlers } from "../gateway/openai/handlers.ts"
import { BackgroundWork } from "../gateway/openai/response-background.ts"
import { ResponseConversation } from "../gateway/openai/response-conversation.ts"
import { ResponseStore } from "../gateway/openai/response-store.ts"
import { StoredChats, storedChatHandlers } from "../gateway/openai/stored-chats.ts"
import { type ModelResolver, createModelResolver, guardModels } from "../gateway/organization-access.ts"
import { type AnswerCounter, startAnswerCounter } from "../gateway/question-sets/answer-counter.ts"
import { startJobs } from "../gateway/question-sets/jobs.ts"
import { type Sets, openSets } from "../gateway/question-sets/sets.ts"
import { type Shadows, createShadows } from "../gateway/question-sets/shadow.ts"
import { LiveTraffic } from "../gateway/routing/queue.ts"
import type { Router } from "../gateway/routing/router.ts"
import type { WebSocketDeps } from "../server/websocket.ts"
import type { ContentCipher } from "../store/content/cipher.ts"
import { findContentStates, hasSealedContent } from "../store/content/content.ts"
import type { Organizations } from "../store/organization-snapshot.ts"
import type { Access } from "./access.ts"
import { type Analytics, analyticsConsumers, openAnalytics } from "./analytics.ts"
import type { App } from "./app.ts"
import { type Content, openContent, openContentCipher } from "./content.ts"
import type { LocalModels } from "./engines.ts"
import { addMoneyMetrics, addWorkerMetrics } from "./metrics.ts"
import { type Money, openMoney } from "./money.ts"
import { regionsOf } from "./platform.ts"
import { RemoteModels } from "./remote-models.ts"
import { type Routing, openRouting } from "./routing.ts"

export type Core = App & LocalModels & Access

/** Of the time, for lines of batches beside live requests. */
const batchShare = 0.01

export interface Gateway {
  readonly money: Money
  readonly analytics: Analytics
  readonly sets: Sets
  readonly shadows: Shadows
  readonly content: Content
  readonly answerCounter: AnswerCounter
  readonly cascadeDays: CascadeDays
  readonly routing: Routing
  readonly remoteModels: RemoteModels
  readonly router: Pick<Router, "open">
  readonly models: ModelResolver
  readonly liveTraffic: LiveTraffic
  readonly inference: Inference
}

export async function openGateway(core: Core): Promise<Gateway> {
  const { config, log, use, clock, ids, metrics, catalog, engines, database, organizations, disk } = core
  const sets = use(await openSets(database, clock, config.billing.outage_grace_s * 1000))
  const money = use(await openMoney({ ...core, consumers: analyticsConsumers(config) }))
  const states: ContentStates = {
    of: (organizationId, seqIds) =>
      findContentStates(database, organizationId, seqIds, new Date(clock.nowMs())),
  }
  const analytics = use(await openAnalytics({ ...core, journal: money.journal, disk, content: states }))
  const liveTraffic = new LiveTraffic(clock, { batchShare })
  const contentCipher = await openContentCipher(config, () => hasSealedContent(database))
  if (!contentCipher.isAvailable)
    log.warn("what gateways store is not encrypted, and content cannot be kept: set content.keys")
  const remoteModels = use(await RemoteModels.open({ database, cipher: contentCipher, catalog, log }))
  const routing = use(
    await openRouting({
      ...core,
      regions: regionsOf(config),
      liveTraffic,
      local: (model) => engines.of(model),
      remote: (model, worker) => remoteModels.engines(model, worker),
      connected: (sku) => remoteModels.workersOf(sku),
    }),
  )
  remoteModels.serveBy(routing)
  addWorkerMetrics(metrics, routing)
  addMoneyMetrics(metrics, money)
  const router = guardModels(routing, organizations, catalog)
  const { meter } = money
  const timeoutMs = config.server.request_timeout_ms
  const models = createModelResolver(organizations, catalog)
  const scoring = { database, catalog, models, router, meter, clock, log, timeoutMs }
  const guardrails = createGuardrails({ ...scoring, organizations, sets })
  const { gatewayId } = money.journal
  const content = use(
    await openContent({ ...core, cipher: contentCipher, gatewayId, scoring: { ...scoring, sets } }),
  )
  const { contentLogger, access } = content
  const { cipher } = access
  const { hasRowSpace } = core
  use(await startJobs({ ...scoring, ids, cipher, hasRowSpace, changed: (change) => sets.invalidate(change) }))
  const inference = use(
    await openInference({ ...core, models, meter, router, guardrails, contentLogger, cipher }),
  )
  const cascadeDays = use(startCascadeDays({ database, clock, log }))
  const shadows = use(createShadows({ ...scoring, sets, ids, days: cascadeDays }))
  const answerCounter = use(startAnswerCounter({ database, clock, log }))
  const asked = { sets, shadows, answerCounter, cascadeDays, content }
  return { money, analytics, ...asked, routing, remoteModels, router, models, liveTraffic, inference }
}

interface InferenceNeeds
  extends
    Pick<Core, "config" | "catalog" | "database" | "clock" | "ids" | "log" | "hasRowSpace">,
    Pick<Gateway, "models" | "router"> {
  readonly organizations: Pick<Organizations, "of">
  readonly meter: Meter
  readonly guardrails: Pick<Guardrails, "begin">
  readonly contentLogger: ContentLogger
  /** Of stored responses. */
  readonly cipher: ContentCipher
}

type InferenceHandlers = Handlers<
  typeof inferenceEndpoints &
    typeof conversationEndpoints &
    typeof storedChatEndpoints &
    typeof anthropicEndpoints
>

interface Inference {
  readonly handlers: InferenceHandlers
  readonly socket: WebSocketDeps
  close(): Promise<void>
}

/** What keeps responses, and the handlers over the router. */
export async function openInference(root: InferenceNeeds): Promise<Inference> {
  const { config, catalog, models, clock, ids, meter, router, guardrails } = root
  const timeoutMs = config.server.request_timeout_ms
  const responseStore = new ResponseStore({ ...root, timeoutMs })
  const storedChats = new StoredChats({ ...root, timeoutMs }, responseStore)
  const conversations = new Conversations({ ...root, timeoutMs }, responseStore)
  const background = new BackgroundWork(timeoutMs)
  const joined = config.database.url === undefined ? null : await responseStore.joinGateways()
  const deps = {
    catalog,
    models,
    clock,
    ids,
    meter,
    timeoutMs,
    responseStore,
    background,
    conversations,
    storedChats,
    router,
    guardrails,
    readBody: createBodyReader(),
    content: root.contentLogger,
  }
  return {
    handlers: {
      ...openaiHandlers(deps),
      ...conversationHandlers(conversations),
      ...storedChatHandlers(storedChats),
      ...anthropicHandlers(deps),
    },
    close: async () => {
      await background.close()
      await joined?.close()
    },
    socket: {
      endpoint: inferenceEndpoints.openResponseSocket,
      converse: (hasRoom) => new ResponseConversation(deps, hasRoom),
    },
  }
}
