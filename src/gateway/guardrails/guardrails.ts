/** Finds the guardrails of a request and runs them: on what the model is to read, and on what it writes. */
import { createHash } from "node:crypto"
import { setImmediate as nextTurn } from "node:timers/promises"
import type { Catalog, Model } from "../../base/catalog.ts"
import type { Log } from "../../base/log.ts"
import { mapConcurrent } from "../../base/lists.ts"
import type { Principal } from "../../contract/access.ts"
import { Fault } from "../../contract/errors.ts"
import { guardrailLimits, guardrailsHeader } from "../../contract/guardrails/guardrails.ts"
import type { ChatMessage, GenerateWork, GenerationEvent } from "../../engine/engine.ts"
import type { Guardrail, Organizations } from "../../store/organization-snapshot.ts"
import { parseSetReference } from "../classification/classification.ts"
import type { Sequence } from "../meter.ts"
import type { ModelResolver } from "../organization-access.ts"
import { type TextScorerDeps, answerText, textsAtOnce } from "../question-sets/score-texts.ts"
import type { Sets } from "../question-sets/sets.ts"
import { type Check, guardOutput, sentences, windowsOf } from "./guard-output.ts"
import { redaction } from "./held-text.ts"
import { type Span, blank, recognizeAll, replaceSpans } from "./recognizers.ts"

interface GuardrailDeps extends TextScorerDeps {
  readonly organizations: Pick<Organizations, "of">
  readonly catalog: Catalog
  readonly models: Pick<ModelResolver, "first">
  readonly sets: Pick<Sets, "find">
  readonly log: Log
}

/** The request that is guarded. */
interface GuardedCall {
  readonly organizationId: string
  readonly principal: Principal
  readonly requestId: string
  readonly sequence: Pick<Sequence, "describe">
  readonly signal: AbortSignal
  /** A line of a batch: its checks let live requests go first too. */
  readonly isBatch: boolean
  /** Parts of the answer are sent before it ends. */
  readonly isStreamed: boolean
  /** Adds a header to the response, where it has one that has not left. */
  header(name: string, value: string): void
}

/** What the model is given after the checks, and the checks of what it writes. */
export interface Guard {
  /** Its SKU. */
  readonly model: string
  readonly work: GenerateWork
  output(events: AsyncIterable<GenerationEvent>): AsyncIterable<GenerationEvent>
}

interface GuardedRequestModel {
  readonly model: string
  /** The name that was asked, where it is a virtual model's: rules may name it too. */
  readonly virtual?: string | null
  readonly work: GenerateWork
}

export interface Guardrails {
  /** Throws Fault `guardrail_blocked` or `guardrail_failed`. `model` is a SKU. */
  begin(call: GuardedCall, asked: GuardedRequestModel): Promise<Guard>
}

/** Texts whose verdict is remembered: a conversation is sent again with every turn. */
const verdictsMax = 20_000
/** Texts of known verdict that are looked up before others get their turn. */
const lookupsPerTurn = 256
/** A longer message is redacted as a whole: finding its sentences would keep everybody waiting. */
const sentenceCharactersMax = 100_000

export function createGuardrails(deps: GuardrailDeps): Guardrails {
  const verdicts = new Map<string, boolean>()
  return {
    begin: async (call, asked) => {
      const found = await deps.organizations.of(call.organizationId)
      const all = found?.guardrails ?? []
      const own = all.filter(({ apiKeyId }) => apiKeyId === null || apiKeyId === call.principal.id)
      if (own.length === 0) return { model: asked.model, work: asked.work, output: (events) => events }
      return await new GuardedRequest(deps, call, own, verdicts).begin(asked)
    },
  }
}

type Stage = "input" | "output"

class GuardedRequest {
  readonly #deps: GuardrailDeps
  readonly #call: GuardedCall
  readonly #rules: readonly Guardrail[]
  readonly #verdicts: Map<string, boolean>
  /** What each guardrail did, by its name. */
  readonly #done = new Map<string, string>()
  #checkedMs = 0

  constructor(
    deps: GuardrailDeps,
    call: GuardedCall,
    rules: readonly Guardrail[],
    verdicts: Map<string, boolean>,
  ) {
    this.#deps = deps
    this.#call = call
    this.#rules = rules
    this.#verdicts = verdicts
  }

  async begin(asked: GuardedRequestModel): Promise<Guard> {
    let { model, work } = asked
    const names = asked.virtual ? [asked.model, asked.virtual] : [asked.model]
    try {
      for (const rule of this.#rulesOf("input", names)) {
        const checked = await this.#checkInput(rule, work)
        work = checked.work
        if (checked.isFound && rule.routeModel !== null)
          model = (await this.#firstModel(rule.routeModel, "generation")).sku
      }
    } catch (error) {
      this.#tell()
      throw error
    }
    const rules = this.#rulesOf("output", [...names, model])
    if (rules.length === 0) this.#tell()
    else this.#call.header(guardrailsHeader, this.#summary())
    return {
      model,
      work,
      output: (events) => (rules.length === 0 ? events : this.#guard(events, rules, work)),
    }
  }

  async #firstModel(name: string, wanted: "decisions" | "generation"): Promise<Model> {
    const { organizationId } = this.#call
    return await this.#deps.models.first({ organizationId, name, wanted })
  }

  /** `models` are SKUs and names of virtual models; a rule may name an alias. */
  #rulesOf(stage: Stage, models: readonly string[]): Guardrail[] {
    const { catalog } = this.#deps
    return this.#rules.filter(
      ({ stage: own, model }) =>
        (own === stage || own === "both") &&
        (model === null || models.includes(catalog.find(model, "generation")?.sku ?? model)),
    )
  }

  /** The developer's own messages are not checked, and the model's were when it wrote them. */
  async #checkInput(rule: Guardrail, work: GenerateWork): Promise<{ work: GenerateWork; isFound: boolean }> {
    const check = this.#checker(rule, "input")
    let isFound = false
    const messages: ChatMessage[] = []
    for (const message of work.messages) {
      const isChecked = message.role === "user" || message.role === "tool"
      const found = isChecked ? await this.#checkMessage(rule, message.content, check) : null
      if (found !== null) isFound = true
      messages.push(found === null ? message : { ...message, content: found })
    }
    if (isFound && rule.action === "block")
      throw new Fault(
        "guardrail_blocked",
        `Cannot run the request: the guardrail ${rule.name} blocks its input`,
      )
    return { work: rule.action === "redact" ? { ...work, messages } : work, isFound }
  }

  /** Null where nothing is found; else the text with what was found redacted. */
  async #checkMessage(rule: Guardrail, text: string, check: Check): Promise<string | null> {
    const recognized = await this.#recognize(rule, "input", text)
    const isRecognized = recognized.length > 0
    if (rule.action !== "redact" || text.length > sentenceCharactersMax) {
      if (!isRecognized && !(await this.#isFound(rule, text, check))) return null
      return rule.action === "redact" ? redaction : text
    }
    // What the set is asked about.
    const rest = blank(text, recognized)
    if (!(await this.#isFound(rule, rest, check))) return isRecognized ? redacted(text, recognized) : null
    const found: Span[] = []
    for (const { segment, index } of sentences.segment(rest))
      if (segment.trim() !== "" && segment.length < text.length && (await check(segment, true)))
        found.push({ start: index, end: index + segment.length })
    // Found only in sentences together: none of them may pass.
    return found.length > 0 ? redacted(text, [...recognized, ...found]) : redaction
  }

  async #isFound(
    { windowCharacters, holdBackCharacters }: Guardrail,
    text: string,
    check: Check,
  ): Promise<boolean> {
    const windows = windowsOf(text, windowCharacters, holdBackCharacters)
    return (
      await mapConcurrent(windows, { concurrency: textsAtOnce }, async (window) => await check(window))
    ).includes(true)
  }

  async *#guard(
    events: AsyncIterable<GenerationEvent>,
    rules: readonly Guardrail[],
    work: GenerateWork,
  ): AsyncGenerator<GenerationEvent> {
    let guarded = events
    for (const rule of rules) {
      const { action, release, windowCharacters, holdBackCharacters } = rule
      const outputRule = {
        // Kept from being `route` by the store.
        action: action === "route" ? ("block" as const) : action,
        // A client that waits for the whole answer gets nothing of one that is blocked.
        release: this.#call.isStreamed ? release : ("end" as const),
        windowCharacters,
        holdBackCharacters,
        isFormatted: work.format.kind !== "text",
        recognize: async (text: string, context: string) =>
          await this.#recognize(rule, "output", text, context),
      }
      guarded = guardOutput(guarded, outputRule, this.#checker(rule, "output"))
    }
    try {
      for await (const event of guarded) {
        // Before its record is written.
        if (event.kind === "end") this.#tell()
        yield event
      }
    } finally {
      this.#tell()
    }
  }

  async #recognize(rule: Guardrail, stage: Stage, text: string, context = ""): Promise<Span[]> {
    const startedMs = this.#deps.clock.monotonicMs()
    const spans = await recognizeAll(text, context, rule.recognizers)
    this.#checkedMs += this.#deps.clock.monotonicMs() - startedMs
    if (spans.length > 0) this.#tellFound(rule, stage)
    return spans
  }

  #tellFound({ name, action }: Guardrail, stage: Stage): void {
    this.#done.set(name, `${action};stage=${stage}`)
  }

  #checker(rule: Guardrail, stage: Stage): Check {
    let looked = 0
    let asked = 0
    // Known verdicts are not counted: a conversation that is sent again gets further each time.
    const countAsked = (): void => {
      if (++asked <= guardrailLimits.windowsMax) return
      throw new Fault(
        "guardrail_failed",
        `Cannot check the text: it has over ${guardrailLimits.windowsMax} windows that are not yet checked`,
      )
    }
    return async (text, isSuspect = false) => {
      if (text.trim() === "") return false
      const startedMs = this.#deps.clock.monotonicMs()
      try {
        if (++looked % lookupsPerTurn === 0) await nextTurn()
        const isFound = await this.#ask(rule, text, countAsked)
        if (isFound) this.#tellFound(rule, stage)
        return isFound
      } catch (error) {
        return this.#failed(rule, stage, error) || isSuspect
      } finally {
        this.#checkedMs += this.#deps.clock.monotonicMs() - startedMs
      }
    }
  }

  #failed(rule: Guardrail, stage: Stage, error: unknown): boolean {
    const { signal } = this.#call
    // The caller went away: there is nothing to decide.
    if (signal.aborted) throw signal.reason
    const what = `error_${rule.onError};stage=${stage}`
    // Once, however many windows there are.
    if (this.#done.get(rule.name) !== what)
      this.#deps.log.warn({ guardrail: rule.id, err: error }, "a guardrail could not check a text")
    this.#done.set(rule.name, what)
    if (rule.onError === "open") return false
    // The caller can act on these.
    if (error instanceof Fault && (error.status === 402 || error.status === 429)) throw error
    throw new Fault(
      "guardrail_failed",
      `Cannot run the request: the guardrail ${rule.name} could not check it`,
      { cause: error },
    )
  }

  /**
   * Asked as a request of its own, which is recorded and charged. The key's models and tokens a minute limit what its
   * callers ask for, not what the organization checks them with; its budgets count the check too.
   */
  async #ask(rule: Guardrail, text: string, countAsked: () => void): Promise<boolean> {
    const { organizationId, principal, requestId, signal, isBatch } = this.#call
    const { version } = await this.#deps.sets.find(
      organizationId,
      parseSetReference(`set:${rule.questionSet}`),
    )
    // What a virtual model comes to may change.
    const model = await this.#firstModel(version.model, "decisions")
    const asked = [organizationId, version.setId, version.hash, model.sku, rule.onAbstain, text]
    const key = createHash("sha256").update(JSON.stringify(asked)).digest("base64")
    const known = this.#verdicts.get(key)
    if (known !== undefined) return known
    countAsked()
    const { keyLimits } = principal
    const asker = keyLimits
      ? { ...principal, keyLimits: { ...keyLimits, allowedModels: null, tokensPerMinute: null } }
      : principal
    const caller = {
      callSource: "guardrail",
      principal: asker,
      organizationId,
      requestId,
      isCharged: true,
      isBatch,
      isWaitedFor: !isBatch,
    } as const
    const verdicts = await answerText(this.#deps, caller, { version, model, text }, signal)
    const isFound = verdicts.some(
      ({ isPredicate, isAbstention, value }) =>
        isPredicate && (isAbstention ? rule.onAbstain === "act" : value === "yes"),
    )
    this.#remember(key, isFound)
    return isFound
  }

  #remember(key: string, isFound: boolean): void {
    this.#verdicts.set(key, isFound)
    if (this.#verdicts.size <= verdictsMax) return
    const [oldest] = this.#verdicts.keys()
    if (oldest !== undefined) this.#verdicts.delete(oldest)
  }

  #summary(): string {
    const done = [...this.#done].map(([name, what]) => `${headerName(name)}=${what}`)
    return [...done, `ms=${Math.ceil(this.#checkedMs)}`].join(", ")
  }

  /** In the record and in the answer's headers, where these have not left. */
  #tell(): void {
    this.#call.header(guardrailsHeader, this.#summary())
    const done = [...this.#done].map(([name, what]) => [`guardrail.${headerName(name)}`, what])
    const guardrails = { guardrail_ms: String(Math.ceil(this.#checkedMs)), ...Object.fromEntries(done) }
    this.#call.sequence.describe({ guardrails })
  }
}

const redacted = (text: string, spans: readonly Span[]): string => replaceSpans(text, spans, () => redaction)

const headerName = (name: string): string => name.replaceAll(/[^A-Za-z0-9_.-]/g, "_").slice(0, 48)
