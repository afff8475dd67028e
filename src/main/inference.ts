/** Builds the inference APIs: what keeps responses, and the handlers over the router. */
import type { Catalog } from "../base/catalog.ts"
import type { Clock } from "../base/clock.ts"
import type { Config } from "../base/config-schema.ts"
import type { Ids } from "../base/ids.ts"
import type { Log } from "../base/log.ts"
import type { anthropicEndpoints } from "../contract/anthropic/messages.ts"
import type { Handlers } from "../contract/endpoint.ts"
import type { storedChatEndpoints } from "../contract/openai/stored-chats.ts"
import type { conversationEndpoints } from "../contract/openai/conversations.ts"
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
import { Conversations, conversationHandlers } from "../gateway/openai/conversations.ts"
import { BackgroundWork } from "../gateway/openai/response-background.ts"
import { StoredChats, storedChatHandlers } from "../gateway/openai/stored-chats.ts"
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
  readonly hasRowSpace: (bytes: number) => boolean
}

type InferenceHandlers = Handlers<
  typeof inferenceEndpoints &
    typeof conversationEndpoints &
    typeof storedChatEndpoints &
    typeof anthropicEndpoints
>

export interface Inference {
  readonly handlers: InferenceHandlers
  readonly socket: WebSocketDeps
  close(): Promise<void>
}

export async function openInference(root: InferenceRoot): Promise<Inference> {
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
