/** A gateway's parts in memory, whole: who calls, which models there are, and engines that answer as a test says. */
import { type Catalog, type Model, createCatalog } from "../src/base/catalog.ts"
import { systemClock } from "../src/base/clock.ts"
import { createIds } from "../src/base/ids.ts"
import type { Membership, Principal } from "../src/contract/access.ts"
import type { Call, RequestFacts } from "../src/contract/endpoint.ts"
import type { ContentLogger } from "../src/gateway/content/content-logger.ts"
import type { Guardrails } from "../src/gateway/guardrails/guardrails.ts"
import type { Sequence } from "../src/gateway/meter.ts"
import type { InferenceDeps } from "../src/gateway/openai/inference.ts"
import { createModelResolver, type ModelResolver } from "../src/gateway/organization-access.ts"
import type { TextCaller } from "../src/gateway/question-sets/score-texts.ts"
import type { Routed, Router } from "../src/gateway/routing/router.ts"
import { idleSequence } from "./idle-sequence.ts"

export const organizationId = "org_1"

export const keyPrincipal: Principal = {
  kind: "key",
  id: "key_1",
  userId: null,
  organizationId,
  role: "member",
  permissions: ["inference"],
  rateLimit: null,
}

export const membership: Membership = { organizationId, role: "member", permissions: ["inference"] }

export const requestFacts = (changes: Partial<RequestFacts> = {}): RequestFacts => ({
  id: "req_1",
  ip: "127.0.0.1",
  userAgent: null,
  startedMs: 0,
  header: () => null,
  signal: new AbortController().signal,
  ...changes,
})

/** A call of an endpoint for inference by an API key. */
export const inferenceCall = (
  body: Uint8Array = new Uint8Array(),
  header: Call["header"] = () => undefined,
): Call<Record<string, never>, Record<string, never>, Uint8Array> => ({
  params: {},
  query: {},
  body,
  principal: keyPrincipal,
  membership,
  request: requestFacts(),
  idempotency: null,
  header,
})

export const textCaller = (callSource: TextCaller["callSource"]): TextCaller => ({
  callSource,
  principal: keyPrincipal,
  organizationId,
  requestId: "req_1",
  isCharged: true,
})

export const testModel = (changes: Partial<Model> = {}): Model => ({
  sku: "m",
  kind: "generation",
  description: "",
  developer: null,
  releaseDate: null,
  public: true,
  enabled: true,
  prices: { inputTokenTicks: 1n, cachedInputTokenTicks: 0n, outputTokenTicks: 0n, millisecondTicks: 0n },
  contextTokensMax: 4096,
  quantization: "int8",
  file: "m.onnx",
  ...changes,
})

export const catalogOf = (changes: Partial<Model> = {}): Catalog => createCatalog([testModel(changes)])

/** Only the catalog's names. */
export const catalogResolver = (catalog: Catalog): ModelResolver =>
  createModelResolver({ of: async () => null }, catalog)

export const logNoContent: ContentLogger = { begin: () => ({ finish: async () => false }) }

export const noGuardrails: Guardrails = {
  begin: async (_, { model, work }) => ({ model, work, output: (events) => events }),
}

const unexpected = (): never => {
  throw new Error("The test expects no such work")
}

/** Work that a test does not expect fails it. */
export function routedTo(engines: Partial<Routed>): Routed {
  return { score: unexpected, embed: unexpected, generate: unexpected, close: () => undefined, ...engines }
}

export const routerTo = (engines: Partial<Routed>): Pick<Router, "open"> => ({
  open: async () => routedTo(engines),
})

/** What inference needs, of a gateway with one model. */
export function inferenceDeps({
  model,
  engines,
  sequence,
  body,
}: {
  readonly model?: Partial<Model>
  readonly engines: Partial<Routed>
  readonly sequence?: Partial<Sequence>
  readonly body: unknown
}): InferenceDeps {
  const catalog = catalogOf({ file: "m.gguf", ...model })
  return {
    catalog,
    models: catalogResolver(catalog),
    router: routerTo(engines),
    meter: { begin: () => idleSequence(sequence) },
    clock: systemClock,
    ids: createIds(systemClock),
    timeoutMs: 60_000,
    // A body of the wire that the handler reads.
    readBody: async () => body as never,
    guardrails: noGuardrails,
    content: logNoContent,
  }
}
