/** Builds the inference APIs: what keeps responses, and the handlers over the router. */
import type { Catalog } from "../base/catalog.ts"
import type { Clock } from "../base/clock.ts"
import type { Config } from "../base/config-schema.ts"
import type { Ids } from "../base/ids.ts"
import type { Log } from "../base/log.ts"
import type { anthropicEndpoints } from "../contract/anthropic/messages.ts"
import type { Handlers } from "../contract/endpoint.ts"
import { inferenceEndpoints } from "../contract/openai/endpoints.ts"
import { anthropicHandlers } from "../gateway/anthropic/messages.ts"
import type { Guardrails } from "../gateway/guardrails/guardrails.ts"
import type { ContentLogger } from "../gateway/content/content-logger.ts"
import type { Meter } from "../gateway/meter.ts"
import type { Router } from "../gateway/routing/router.ts"
import type { ModelResolver } from "../gateway/organization-access.ts"
import { createBodyReader } from "../gateway/openai/body.ts"
import { openaiHandlers } from "../gateway/openai/handlers.ts"
import { ResponseConversation } from "../gateway/openai/response-conversation.ts"
import { ResponseStore } from "../gateway/openai/response-store.ts"
import type { WebSocketDeps } from "../server/websocket.ts"
import type { ContentCipher } from "../store/content/cipher.ts"
import type { Organizations } from "../store/organization-snapshot.ts"
import type { Database } from "../store/sql.ts"

interface InferenceRoot {
  readonly organizations: Pick<Organizations, "of">
  readonly config: Config
  readonly catalog: Catalog
  readonly models: ModelResolver
  readonly database: Database
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  readonly meter: Meter
  readonly router: Pick<Router, "open">
  readonly guardrails: Pick<Guardrails, "begin">
  readonly contentLogger: ContentLogger
  /** Of stored responses. */
  readonly cipher: ContentCipher
}

type InferenceHandlers = Handlers<typeof inferenceEndpoints & typeof anthropicEndpoints>

export interface Inference {
  readonly handlers: InferenceHandlers
  readonly socket: WebSocketDeps
  close(): Promise<void>
}

export async function openInference(root: InferenceRoot): Promise<Inference> {
  const { config, catalog, models, clock, ids, meter, router, guardrails } = root
  const responseStore = new ResponseStore(root)
  const joined = config.database.url === undefined ? null : await responseStore.joinGateways()
  const deps = {
    catalog,
    models,
    clock,
    ids,
    meter,
    timeoutMs: config.server.request_timeout_ms,
    responseStore,
    router,
    guardrails,
    readBody: createBodyReader(),
    content: root.contentLogger,
  }
  return {
    handlers: { ...openaiHandlers(deps), ...anthropicHandlers(deps) },
    close: async () => await joined?.close(),
    socket: {
      endpoint: inferenceEndpoints.openResponseSocket,
      converse: () => new ResponseConversation(deps),
    },
  }
}
