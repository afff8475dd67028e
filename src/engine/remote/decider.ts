/** Decisions at a worker in the best way that it offers, which a probe finds before the first of them. */
import { objectOf } from "../../base/json.ts"
import { Fault } from "../../contract/errors.ts"
import type { DecisionMethod, ScoreEngine, ScoreSize } from "../engine.ts"
import { type ChatAbility, type ChatDeps, chatScorer, tryAbility } from "./chat-scorer.ts"
import type { Dialect } from "./dialects.ts"
import { type HttpClient, type Json } from "./http-client.ts"
import { type NativeWire, nativeScorer } from "./native-scorer.ts"
import { probe } from "./questions.ts"
import { type RemoteScoredModel, tokenScorer } from "./remote-scorer.ts"

export interface Decider extends ScoreEngine {
  /** Asks the worker when that is not known yet; throws Fault `decisions_unsupported`, or what failed. */
  method(signal: AbortSignal): Promise<DecisionMethod>
  /** As far as it is known. */
  readonly methodFound: DecisionMethod | null
}

interface Found {
  readonly method: DecisionMethod
  readonly scorer: Pick<ScoreEngine, "score" | "sizeMost">
}

const PROBE_TIMEOUT_MS = 60_000
const UNABLE_MS = 60_000
/** Most APIs show twenty alternatives, some five; a reasoning model refuses a temperature, and thinks before it answers. */
const TOPS = [20, 5]
const THINKING_TOKENS_MAX = 8_192

export function remoteDecider(client: HttpClient, dialect: Dialect, model: RemoteScoredModel): Decider {
  const deps = { client, dialect, model }
  let probing: Promise<Found> | null = null
  let found: Found | null = null
  const open = async (signal: AbortSignal): Promise<Found> => {
    signal.throwIfAborted()
    if (!probing) {
      // Others may wait for it: it does not end with the request that began it.
      const current = find(deps, AbortSignal.timeout(PROBE_TIMEOUT_MS))
      probing = current
      current.then(
        (one) => (found = one),
        // A worker that was unreachable may answer the next time; one that cannot decide is not asked all of it each time.
        (error: unknown) => {
          if (!(error instanceof Fault) || error.code !== "decisions_unsupported") probing = null
          else setTimeout(() => (probing = null), UNABLE_MS).unref()
        },
      )
    }
    const gone = Promise.withResolvers<never>()
    const leave = (): void => gone.reject(signal.reason)
    signal.addEventListener("abort", leave, { once: true })
    try {
      return await Promise.race([probing, gone.promise])
    } finally {
      signal.removeEventListener("abort", leave)
    }
  }
  return {
    facts: async () => ({
      name: model.name,
      contextTokensMax: model.contextTokensMax,
      parameterCount: 0,
      quantization: model.quantization,
    }),
    score: async (work, call) => {
      const { method, scorer } = await open(call.signal)
      return { ...(await scorer.score(work, call)), method }
    },
    sizeMost: (work) => {
      if (found) return found.scorer.sizeMost?.(work) ?? null
      const sizes = abilitiesOf(dialect).map((ability) => chatScorer(deps, ability).sizeMost(work))
      const most = (field: keyof ScoreSize): number => Math.max(...sizes.map((size) => size?.[field] ?? 0))
      return { inputTokens: most("inputTokens"), outputTokens: most("outputTokens") }
    },
    method: async (signal) => (await open(signal)).method,
    get methodFound() {
      return found?.method ?? null
    },
    close: async () => await client.close(),
  }
}

async function find(
  deps: ChatDeps & { readonly model: RemoteScoredModel },
  signal: AbortSignal,
): Promise<Found> {
  const { client, dialect, model } = deps
  const native = await findNative(deps, signal)
  if (native) return native
  const tokens = tokenScorer(client, dialect, model)
  if (tokens) return { method: "tokens", scorer: tokens }
  let refused = ""
  for (const ability of abilitiesOf(dialect)) {
    const tried = await tryAbility(deps, ability, signal)
    if (tried.refusal === null) return { method: ability.form, scorer: chatScorer(deps, ability) }
    refused = tried.refusal
    if (!tried.isCut || ability.form === "logprobs") continue
    const thinking = { ...ability, thinkingTokensMax: THINKING_TOKENS_MAX }
    const again = await tryAbility(deps, thinking, signal)
    if (again.refusal === null) return { method: ability.form, scorer: chatScorer(deps, thinking) }
  }
  throw new Fault(
    "decisions_unsupported",
    `Cannot decide with this model: its worker answers neither for decisions nor as a chat: ${refused}`,
  )
}

/** Where only one endpoint is possible, what it fails with is thrown. */
async function findNative(
  { client, dialect, model }: ChatDeps & { readonly model: RemoteScoredModel },
  signal: AbortSignal,
): Promise<Found | null> {
  const [only, another] = dialect.native
  const { questions } = probe
  const bodyOf = (wire: NativeWire): Json => wire.body(model.name, probe.text, questions)
  if (only && !another) {
    only.read(objectOf(await client.json(only.path, bodyOf(only), signal)), questions)
    return { method: "native", scorer: nativeScorer(client, model, only) }
  }
  for (const wire of dialect.native) {
    const { answer, refusal } = await client.tryJson(wire.path, bodyOf(wire), signal)
    if (refusal !== null) continue
    try {
      wire.read(objectOf(answer), questions)
    } catch {
      // Something else answers there.
      continue
    }
    return { method: "native", scorer: nativeScorer(client, model, wire) }
  }
  return null
}

function abilitiesOf({ chat }: Dialect): ChatAbility[] {
  const plain = { top: 0, isCold: true, thinkingTokensMax: 0 }
  const stated: ChatAbility[] = (["schema", "text"] as const).flatMap((form) => [
    { ...plain, form },
    { ...plain, form, isCold: false },
  ])
  if (!chat.hasLogprobs) return stated
  return [...TOPS.map((top): ChatAbility => ({ ...plain, form: "logprobs", top })), ...stated]
}
