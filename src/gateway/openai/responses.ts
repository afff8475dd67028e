/** Answers the Responses API: puts the conversation together, writes the response, and keeps it where it is to be stored. */
import { errorCode } from "../../base/error-code.ts"
import { EventStream, type Handlers, type StreamEvent } from "../../contract/endpoint.ts"
import { Fault } from "../../contract/errors.ts"
import type { inferenceEndpoints } from "../../contract/openai/endpoints.ts"
import type {
  InputItem,
  ResponseEvent,
  ResponseObject,
  ResponseRequest,
} from "../../contract/openai/responses.ts"
import { type GenerationUsage, noGenerationUsage } from "../../engine/engine.ts"
import { organizationOf } from "../batches/files.ts"
import { noUsage } from "../meter.ts"
import type { MeteredCall } from "../metered-call.ts"
import {
  Generating,
  type InferenceDeps,
  countPromptTokens,
  outputContent,
  runInference,
} from "./inference.ts"
import type { Conversations } from "./conversations.ts"
import { type BackgroundWork, DetachableRequest } from "./response-background.ts"
import { EventLog } from "./response-replay.ts"
import type { KnownItem, ResponseStore } from "./response-store.ts"
import { type ToolIdentity, responseTools } from "./response-tools.ts"
import { droppedItems, isSaid, promptWork, responseWork, summaryWork } from "./response-work.ts"
import { ResponseWriter, conversationOf } from "./response-writer.ts"
import { noteDropped } from "./chat-work.ts"

export interface ResponseDeps extends InferenceDeps {
  readonly responseStore: ResponseStore
  readonly background: BackgroundWork
  readonly conversations: Conversations
}

type ResponseHandlers = Pick<
  Handlers<typeof inferenceEndpoints>,
  | "createResponse"
  | "getResponse"
  | "deleteResponse"
  | "cancelResponse"
  | "listInputItems"
  | "openResponseSocket"
  | "countInputTokens"
>

export function responseHandlers(deps: ResponseDeps): ResponseHandlers {
  const { responseStore } = deps
  return {
    createResponse: async (asker) => {
      const request = new DetachableRequest(asker.request)
      const own = { ...asker, request: request.facts, header: asker.header.bind(asker) }
      const start = { callSource: "responses", wire: "responses", asker: own } as const
      const answer = await runInference(deps, start, async (call, body) => {
        const turn = await startTurn(deps, call, { request: body })
        if (body.background === true) {
          await turn.runAlone(request)
          return body.stream === true ? turn : turn.response
        }
        if (body.stream === true) return new EventStream(named(turn.events()), null)
        return await turn.whole()
      })
      // Who reads it may leave: it goes on.
      return answer instanceof Turn ? new EventStream(named(answer.following()), null) : answer
    },
    openResponseSocket: async () => {
      throw new Fault(
        "upgrade_required",
        "Cannot answer a plain GET here: open a WebSocket, or POST the request",
      )
    },
    getResponse: async ({ params, query, membership }) => {
      const organizationId = organizationOf(membership)
      const { response_id: id } = params
      if (query.stream !== true) return await responseStore.response(organizationId, id)
      return new EventStream(
        named(await responseStore.events(organizationId, id, query.starting_after ?? null)),
        null,
      )
    },
    countInputTokens: async (asker) => {
      const start = { callSource: "count_tokens", wire: "input_tokens", asker } as const
      return await runInference(deps, start, async (call, body) => {
        const { organizationId } = call
        const { items } = await conversation(deps, organizationId, { request: body, memory: null })
        const said = items.map(({ item }) => item)
        const tools = responseTools(body, said)
        const work = promptWork(body, tools, { items: said, organizationId })
        noteDropped(call, tools.dropped, droppedItems(said))
        const input_tokens = await countPromptTokens(deps, call, { model: body.model, work })
        return { object: "response.input_tokens" as const, input_tokens }
      })
    },
    deleteResponse: async ({ params, membership }) => {
      await responseStore.remove(organizationOf(membership), params.response_id)
      return { id: params.response_id, object: "response", deleted: true }
    },
    cancelResponse: async ({ params, membership }) =>
      await responseStore.cancel(organizationOf(membership), params.response_id),
    listInputItems: async ({ params, query, membership }) =>
      await responseStore.inputItems(organizationOf(membership), params.response_id, query),
  }
}

async function* named(events: AsyncIterable<ResponseEvent>): AsyncGenerator<StreamEvent> {
  for await (const event of events) yield { name: event.type, value: event }
}

/** Where a turn finds what came before it, other than in the store. */
export interface Memory {
  /** The items of a response of this connection and all before it; null when it is not one. */
  recall(responseId: string): readonly KnownItem[] | null
  remember(responseId: string, items: readonly KnownItem[]): void
  /** A turn that failed cannot be continued from where it began (OpenAI's rule for its sockets). */
  invalidate(responseId: string): void
}

/** Everything that can be refused is refused here; the turn that comes back can be run. */
export async function startTurn(
  deps: ResponseDeps,
  call: MeteredCall,
  {
    request,
    memory = null,
  }: { readonly request: ResponseRequest; readonly memory?: Memory | null | undefined },
): Promise<Turn> {
  const previous = request.previous_response_id ?? null
  try {
    return await openTurn(deps, call, { request, memory })
  } catch (error) {
    if (previous !== null) memory?.invalidate(previous)
    throw error
  }
}

async function openTurn(
  deps: ResponseDeps,
  call: MeteredCall,
  { request, memory }: { readonly request: ResponseRequest; readonly memory: Memory | null },
): Promise<Turn> {
  const { organizationId } = call
  const { items, own } = await conversation(deps, organizationId, { request, memory })
  const said = items.map(({ item }) => item)
  const tools = responseTools(request, said)
  const isCompacting = said.at(-1)?.type === "compaction_trigger"
  const work = isCompacting
    ? summaryWork(request, said, organizationId)
    : responseWork(request, said, { organizationId, tools })
  noteDropped(call, tools.dropped, droppedItems(said))
  const isStreamed = request.stream === true || memory !== null
  const asked = { model: request.model, work, count: 1, isStreamed }
  const store = (request.store ?? true) && (await deps.responseStore.stores(organizationId))
  if (request.background === true) {
    if (!store)
      throw new Fault(
        "invalid_request",
        "Cannot run in the background: the response would not be stored; send store: true, where the organization stores responses",
        { param: "background" },
      )
    deps.background.check(organizationId)
  }
  const generating = await Generating.start(deps, call, asked)
  const { identities } = tools
  return new Turn(deps, { generating, request, items, own, store, memory, identities, isCompacting })
}

/** Answers a completed response without output: what it was asked is remembered, and nothing is generated. */
export async function warmUp(
  deps: ResponseDeps,
  call: MeteredCall,
  { request, memory }: { readonly request: ResponseRequest; readonly memory: Memory },
): Promise<ResponseEvent[]> {
  const { organizationId, sequence } = call
  const named = { organizationId, name: request.model, wanted: "generation" } as const
  const model = await deps.models.first(named)
  const previous = request.previous_response_id ?? null
  const before =
    previous === null ? [] : await earlier(deps, organizationId, { previousId: previous, memory })
  const own = await deps.responseStore.resolve(organizationId, inputOf(request.input))
  await sequence.reserve(model, noUsage)
  const store = (request.store ?? true) && (await deps.responseStore.stores(organizationId))
  const writer = new ResponseWriter(deps, { request, model: model.sku, store })
  const events = writer.start(noGenerationUsage)
  writer.end(noGenerationUsage, store)
  // Nothing was asked yet: what is remembered is kept with the turn that asks.
  await call.succeed(noUsage, () => outputContent(model.sku))
  const kept =
    store &&
    (await deps.responseStore.keep(organizationId, {
      response: writer.response,
      previousId: previous,
      input: own,
      pieces: [],
    }))
  if (kept !== store) writer.end(noGenerationUsage, kept)
  memory.remember(writer.id, [...before, ...own])
  return [...events, ...writer.terminal()]
}

async function earlier(
  { responseStore }: ResponseDeps,
  organizationId: string,
  { previousId, memory }: { readonly previousId: string; readonly memory: Memory | null },
): Promise<readonly KnownItem[]> {
  return memory?.recall(previousId) ?? (await responseStore.conversation(organizationId, previousId))
}

/** All that was said before and with a request. */
export async function conversation(
  deps: ResponseDeps,
  organizationId: string,
  {
    request,
    memory,
  }: {
    readonly request: Pick<ResponseRequest, "input" | "previous_response_id" | "conversation">
    readonly memory: Memory | null
  },
): Promise<{ items: KnownItem[]; own: KnownItem[] }> {
  const previous = request.previous_response_id ?? null
  const continued = conversationOf(request)
  if (previous !== null && continued !== null)
    throw new Fault("invalid_request", "Cannot use conversation together with previous_response_id", {
      param: "conversation",
    })
  const before =
    continued !== null
      ? await deps.conversations.items(organizationId, continued)
      : previous === null
        ? []
        : await earlier(deps, organizationId, { previousId: previous, memory })
  const own = await deps.responseStore.resolve(organizationId, inputOf(request.input))
  if (own.slice(0, -1).some(isTrigger))
    throw new Fault("invalid_request", "Cannot use the input: compaction_trigger is not its last item", {
      param: "input",
    })
  // What was compacted stands in its place.
  const items = [...before.slice(before.findLastIndex(isTrigger) + 1), ...own]
  if (!items.some(({ item }) => isSaid(item)))
    throw new Fault("invalid_request", "Cannot answer: there is no input; send text or items", {
      param: "input",
    })
  return { items, own }
}

const isTrigger = ({ item }: KnownItem): boolean => item.type === "compaction_trigger"

function inputOf(input: ResponseRequest["input"]): InputItem[] {
  if (input === undefined) return []
  return typeof input === "string" ? [{ type: "message", role: "user", content: input }] : input
}

interface TurnFacts {
  readonly generating: Generating
  readonly request: ResponseRequest
  /** The whole conversation, and the part of it that this request brought. */
  readonly items: readonly KnownItem[]
  readonly own: readonly KnownItem[]
  readonly store: boolean
  readonly memory: Memory | null
  readonly identities: ReadonlyMap<string, ToolIdentity>
  /** The answer is the conversation in short. */
  readonly isCompacting: boolean
}

/** One response being written. */
class Turn {
  readonly #deps: ResponseDeps
  readonly #facts: TurnFacts
  readonly #writer: ResponseWriter
  #isCancelled = false
  readonly #log = new EventLog<ResponseEvent>()

  constructor(deps: ResponseDeps, facts: TurnFacts) {
    this.#deps = deps
    this.#facts = facts
    this.#writer = new ResponseWriter(deps, {
      request: facts.request,
      model: facts.generating.model.sku,
      store: facts.store,
      identities: facts.identities,
      isCompacting: facts.isCompacting,
    })
    facts.generating.identify(this.#writer.id)
  }

  /** The response as one object; a failure is thrown. */
  async whole(): Promise<ResponseObject> {
    const events = this.events()
    for (;;) {
      const { done } = await events.next()
      if (done) break
    }
    if (this.#failure) throw this.#failure
    return this.#writer.response
  }

  #failure: unknown = null

  /** As it stands. */
  get response(): ResponseObject {
    return this.#writer.response
  }

  /** Goes on by itself, from the store's first word of it to its last. */
  async runAlone(request: DetachableRequest): Promise<void> {
    const { generating } = this.#facts
    const { organizationId } = generating.call
    // From now on every gateway finds it.
    if (!(await this.#store())) {
      const fault = new Fault(
        "metering_unavailable",
        "Cannot run in the background: the response cannot be stored",
      )
      generating.cancel(fault)
      throw fault
    }
    this.#deps.background.run(organizationId, request, async () => {
      for await (const event of this.events()) void event
    })
  }

  /** Its events, from the first, for as long as they come. */
  following(): AsyncIterable<ResponseEvent> {
    return this.#log.from(0)
  }

  /** Everything that is sent is also there for those who ask for the stream again while it runs. */
  async *events(): AsyncGenerator<ResponseEvent> {
    try {
      for await (const event of this.#events()) {
        this.#log.add(event)
        yield event
      }
    } finally {
      this.#log.end()
    }
  }

  async *#events(): AsyncGenerator<ResponseEvent> {
    const { generating } = this.#facts
    const { organizationId } = generating.call
    const { responseStore } = this.#deps
    const writer = this.#writer
    const leave = responseStore.enter(organizationId, writer.id, {
      cancel: () => {
        this.#isCancelled = true
        generating.cancel(new Fault("client_closed", "Cannot go on: the response was cancelled"))
      },
      response: () => writer.response,
      log: this.#log,
    })
    const [run] = generating.runs()
    const generated = run?.[Symbol.asyncIterator]()
    let started = false
    try {
      // Until the first token the work may still move to another worker, and the region is told in a header.
      let next = await generated?.next()
      started = true
      generating.call.sequence.firstByte()
      yield* writer.start(generating.usage())
      for (; next && !next.done; next = await generated?.next()) yield* writer.add(next.value)
      await this.#finish()
      yield* writer.terminal()
    } catch (error) {
      const events = await this.#fail(error)
      // Without a first event it is an ordinary error, where somebody waits for one.
      if (!started && this.#facts.request.background !== true) throw error
      if (!started) yield* writer.start(generating.usage())
      yield* events
    } finally {
      // The reader went away between two events.
      await generated?.return?.()
      leave()
    }
  }

  /** The record first, then what is kept, then the terminal event. */
  async #finish(): Promise<void> {
    const { generating, memory, items, store, request } = this.#facts
    const writer = this.#writer
    const used = generating.usage()
    await generating.succeed({ stopReason: writer.stopReason, toolCalls: writer.toolNames })
    writer.end(used, store)
    const kept = store && (await this.#store(request.background === true))
    if (kept !== store) writer.end(used, kept)
    const output = writer.output.map((item) => ({ id: item.id, item: item as InputItem }))
    const continued = conversationOf(request)
    if (continued !== null)
      await this.#deps.conversations.keep(generating.call.organizationId, continued, [
        ...this.#facts.own,
        ...output,
      ])
    memory?.remember(writer.id, [...items, ...output])
  }

  async #store(hasBegun = false): Promise<boolean> {
    const { generating, request, own } = this.#facts
    return await this.#deps.responseStore.keep(generating.call.organizationId, {
      response: this.#writer.response,
      previousId: request.previous_response_id ?? null,
      input: own,
      pieces: this.#writer.pieces,
      hasBegun,
    })
  }

  async #fail(error: unknown): Promise<ResponseEvent[]> {
    const { generating, request, memory } = this.#facts
    const { signal } = generating.call.request
    const used = generating.usage()
    if (typeof request.previous_response_id === "string") memory?.invalidate(request.previous_response_id)
    await generating.call.fail(error)
    this.#failure = error
    if (request.background === true) {
      const events = this.#ending(error, used)
      await this.#store(true)
      return events
    }
    // The client is gone: there is no one to send it to.
    if (signal.aborted && errorCode(signal.reason) === "client_closed") throw error
    return this.#ending(error, used)
  }

  #ending(error: unknown, used: GenerationUsage): ResponseEvent[] {
    if (this.#isCancelled) return this.#writer.cancel(used)
    const fault = error instanceof Fault ? error : null
    const code = fault && fault.status < 500 ? fault.code : "server_error"
    return this.#writer.fail({ code, message: fault?.message ?? "The response failed unexpectedly" }, used)
  }
}
