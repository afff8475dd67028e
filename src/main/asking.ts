/** The handlers of decisions: the two wires, question sets, and agents over MCP. */
import { originCheck, parseOrigins } from "../base/addresses.ts"
import { classificationHandlers } from "../gateway/classify.ts"
import { mcpHandlers } from "../gateway/mcp/handlers.ts"
import { decideHandlers, createSetPolicies } from "../gateway/question-sets/policy.ts"
import type { Core, Gateway } from "./gateway.ts"
import { loadDocs, version } from "./package-files.ts"

type Asking = ReturnType<typeof classificationHandlers> &
  ReturnType<typeof decideHandlers> &
  ReturnType<typeof mcpHandlers>

export async function askingHandlers(core: Core, gateway: Gateway): Promise<Asking> {
  const { config, catalog, clock, database, publicUrl } = core
  const { money, router, models, sets, shadows, answerCounter, content } = gateway
  const classify = {
    models,
    router,
    meter: money.meter,
    clock,
    cascadeDays: gateway.cascadeDays,
    timeoutMs: config.server.request_timeout_ms,
    compatibility: {
      nullDescriptions: config.compat.systemone_null_descriptions,
      decisionsGa: config.compat.decisions_ga,
    },
    content: content.contentLogger,
  }
  const setDeps = { sets, shadows, answerCounter }
  const handlers = {
    ...classificationHandlers({ ...classify, sets: createSetPolicies(setDeps) }),
    ...decideHandlers({ ...classify, ...setDeps }),
  }
  const mcp = mcpHandlers({
    database,
    handlers,
    model: catalog.fallback.sku,
    version,
    docs: await loadDocs(),
    isAllowedOrigin: originCheck(parseOrigins(config.server.mcp_origins) ?? [], publicUrl),
  })
  return { ...handlers, ...mcp }
}
