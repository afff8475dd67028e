/**
 * One metered call: whatever runs a model for an organization runs in `runMetered`, which begins the record of the request and
 * finishes it exactly once, however the request ends. Handlers read, resolve, reserve and run in between.
 */
import type { Model } from "../base/catalog.ts"
import { parsedJson } from "../base/json.ts"
import type { Log } from "../base/log.ts"
import { threadBytesMin } from "../base/peer/threads.ts"
import type { Principal, Membership } from "../contract/access.ts"
import {
  type CallSource,
  type Endpoint,
  EventStream,
  type RequestFacts,
  sequenceHeader,
} from "../contract/endpoint.ts"
import type { Fault } from "../contract/errors.ts"
import { regionHeader } from "../contract/headers.ts"
import { type LanguageTag, languageHeader, unknownLanguage } from "../contract/language.ts"
import { stickyHeader } from "../contract/platform/virtual-models.ts"
import { mergeTags, readTags, type Tags, tagsHeader } from "../contract/tags.ts"
import type { AskedContent, ContentEnd, ContentLogger, PendingContent } from "./content/content-logger.ts"
import { failureOf, type Meter, noUsage, type Outcome, type Sequence, success, type Usage } from "./meter.ts"
import { readRoutingHint } from "./routing/plan.ts"
import type { Routed, Router } from "./routing/router.ts"

/** Who asks, for which organization. */
export interface Asker {
  readonly principal: Principal | null
  readonly membership: Pick<Membership, "organizationId"> | null
  readonly request: RequestFacts
  /** Adds a header to the response; a conversation over a socket and a job have none. */
  header?(name: string, value: string): void
}

export interface MeteredDeps {
  readonly meter: Meter
  /** Without it nothing is kept. */
  readonly content?: ContentLogger
}

interface MeteredStart {
  readonly callSource: CallSource
  readonly asker: Asker
}

/**
 * Runs the work of one request. What it throws is recorded as the failure that it is; an answer that comes as events is recorded
 * when they end, or when the client reads no further.
 */
export async function runMetered<Result>(
  deps: MeteredDeps,
  start: MeteredStart,
  work: (call: MeteredCall) => Promise<Result>,
): Promise<Result> {
  const call = new MeteredCall(deps, start)
  try {
    const result = await work(call)
    if (!(result instanceof EventStream)) return result
    // Of the same class, with the same events.
    return new EventStream(call.through(result.events), result.ending) as Result
  } catch (error) {
    await call.fail(error)
    throw error
  }
}

export class MeteredCall {
  readonly sequence: Sequence
  readonly principal: Principal
  readonly organizationId: string
  readonly request: RequestFacts
  /** What was used until now: what a request that fails is charged. */
  used: () => Usage = () => noUsage
  /** Unknown until its text is read. */
  language: LanguageTag = unknownLanguage
  readonly #asker: Asker
  readonly #callSource: CallSource
  readonly #contentLogger: ContentLogger | undefined
  #toldId = ""
  #tags: Tags = {}
  #content: PendingContent | null = null
  #routed: Routed | null = null

  constructor({ meter, content }: MeteredDeps, { callSource, asker }: MeteredStart) {
    const { principal, membership, request } = asker
    if (!principal || !membership)
      throw new Error("Cannot run a model: the endpoint lets in callers without an organization")
    this.#asker = asker
    this.#callSource = callSource
    this.#contentLogger = content
    this.principal = principal
    this.organizationId = membership.organizationId
    this.request = request
    this.sequence = meter.begin({
      callSource,
      principal,
      organizationId: membership.organizationId,
      request,
    })
    this.#tellId()
  }

  #tellId(): void {
    this.#toldId = this.sequence.id
    this.header(sequenceHeader, this.#toldId)
  }

  header(name: string, value: string): void {
    this.#asker.header?.(name, value)
  }

  /** The request that a body holds, with the tags of its header; one that is refused for them is recorded with the model it named. */
  async read<Body>(bytes: Uint8Array, decode: (bytes: Uint8Array) => Promise<Body>): Promise<Body> {
    try {
      this.readTags()
    } catch (error) {
      this.sequence.name(modelNamedIn(bytes))
      throw error
    }
    return await decode(bytes)
  }

  /** Those of the header. Throws Fault `invalid_header`. */
  readTags(): void {
    const header = this.request.header(tagsHeader)
    if (header !== null) this.tag(readTags(header))
  }

  /** Those that were added first win. */
  tag(tags: Tags): void {
    this.#tags = mergeTags(this.#tags, tags)
    this.sequence.tag(tags)
  }

  /** What splits are sticky by: the header, or else what the request is about. */
  stickyKey(about: string): string {
    return this.request.header(stickyHeader) ?? about
  }

  /** What the text is in: recorded, and told in a header. */
  inLanguage(language: LanguageTag): LanguageTag {
    this.language = language
    this.sequence.describe({ language })
    this.header(languageHeader, language)
    return language
  }

  /** Begins to keep the content of the request, where it is to be kept; `succeed` ends it. */
  keep(asked: () => AskedContent): void {
    const { sequence, organizationId, principal } = this
    this.#content =
      this.#contentLogger?.begin({
        seqId: sequence.id,
        organizationId,
        principal,
        startedMs: this.request.startedMs,
        endpoint: this.#callSource,
        tags: this.#tags,
        span: sequence.trace.span,
        asked,
      }) ?? null
  }

  /** Finds the engines that may run the model for this organization; they are given back when the call ends. */
  async route(router: Pick<Router, "open">, model: Model): Promise<Routed> {
    // Of a model that did not serve.
    this.#routed?.close()
    this.#routed = await router.open({
      model: model.sku,
      organizationId: this.organizationId,
      hint: readRoutingHint(this.request),
      isBatch: this.request.isBatch === true,
      trace: this.sequence.trace,
      onPlaced: (region) => this.placed(region),
    })
    return this.#routed
  }

  placed(region: string): void {
    this.sequence.placed(region)
    this.header(regionHeader, region)
  }

  /** Resolves when usage, and what is kept of the content, are on record; says whether evidence is kept. */
  async succeed(
    usage: Usage,
    content?: () => ContentEnd,
    outcome: Partial<Pick<Outcome, "stopReason" | "toolCalls">> = {},
  ): Promise<boolean> {
    this.#routed?.close()
    const [isKept] = await Promise.all([
      content && this.#content ? this.#content.finish(content) : false,
      this.sequence.finish(usage, { ...success, ...outcome }),
    ])
    return isKept
  }

  /** The first outcome counts. Where even this cannot be recorded, the caller gets the first error; the journal refuses new requests by then. */
  async fail(error: unknown): Promise<void> {
    this.#routed?.close()
    await this.sequence.finish(this.used(), failureOf(error)).catch(() => undefined)
    // One that may be repeated has another id once it has failed for nothing.
    if (this.sequence.id !== this.#toldId) this.#tellId()
  }

  /** Hands events on; a client that leaves before the end is charged what was used until then. */
  async *through<Event>(events: AsyncIterable<Event>): AsyncGenerator<Event> {
    try {
      for await (const event of events) yield event
    } catch (error) {
      await this.fail(error)
      throw error
    } finally {
      await this.fail(this.request.signal.reason ?? new Error("The stream was left"))
    }
  }
}

/** A request that was refused before its handler saw it. */
interface Refusal {
  readonly endpoint: Endpoint
  readonly principal: Principal
  readonly request: RequestFacts
  readonly fault: Fault
  readonly body?: Uint8Array | undefined
}

/** Records a refusal where requests of its kind are recorded, and returns the id of the record. */
export function recordRefusal(
  { meter, log }: { readonly meter: Meter; readonly log: Log },
  { endpoint: { callSource }, principal, request, fault, body }: Refusal,
): string | null {
  const { organizationId } = principal
  // A record without an organization would be visible to no organization.
  if (callSource === undefined || organizationId === null) return null
  const sequence = meter.begin({ callSource, principal, organizationId, request })
  if (body) sequence.name(modelNamedIn(body))
  sequence
    .finish(noUsage, failureOf(fault))
    .catch((error: unknown) => log.warn({ err: error }, "a refused request could not be recorded"))
  return sequence.id
}

const parsedBytesMax = 64 * 1024
const modelMember = /"model"\s*:\s*("(?:[^"\\]|\\.)*")/

/** As much as names the model, of a body that may be handed over to a thread. */
export const headOf = (body: Uint8Array): Uint8Array =>
  // A copy, which Buffer's own slice is not.
  body.length < threadBytesMin ? body : Uint8Array.from(body.subarray(0, parsedBytesMax))

/** The model that a refused body names, as far as it can be told: the body may be no JSON, or too large to parse here. */
export function modelNamedIn(body: Uint8Array): string {
  const text = new TextDecoder().decode(body.subarray(0, parsedBytesMax))
  const whole = body.length <= parsedBytesMax ? parsedJson(text) : undefined
  const model = whole === undefined ? parsedJson(modelMember.exec(text)?.[1] ?? "") : Object(whole).model
  return typeof model === "string" ? model : ""
}
