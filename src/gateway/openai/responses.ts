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
import { noGenerationUsage } from "../../engine/engine.ts"
import { noUsage } from "../sequence-record.ts"
import type { Asker, MeteredCall } from "../metered-call.ts"
import {
  Generating,
  type InferenceDeps,
  countPromptTokens,
  outputContent,
  runInference,
} from "./inference.ts"
import { EventLog } from "./response-replay.ts"
import type { KnownItem, ResponseStore } from "./response-store.ts"
import { type ToolIdentity, responseTools } from "./response-tools.ts"
import { promptWork, responseWork } from "./response-work.ts"
import { ResponseWriter } from "./response-writer.ts"
import { noteDropped } from "./chat-work.ts"

export interface ResponseDeps extends InferenceDeps {
  readonly responseStore: ResponseStore
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
    createResponse: async (asker) =>
      await runInference(deps, { callSource: "responses", wire: "responses", asker }, async (call, body) => {
        const turn = await startTurn(deps, call, { request: body })
        if (body.stream === true) return new EventStream(named(turn.events()), null)
        return await turn.whole()
      }),
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
        const tools = responseTools(body)
        const said = items.map(({ item }) => item)
        const work = promptWork(body, tools, { items: said, organizationId })
        noteDropped(call, tools.dropped)
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

const organizationOf = (membership: Asker["membership"]): string => membership?.organizationId ?? ""

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
  const tools = responseTools(request)
  const said = items.map(({ item }) => item)
  const work = responseWork(request, said, { organizationId, tools })
  noteDropped(call, tools.dropped)
  const isStreamed = request.stream === true || memory !== null
  const asked = { model: request.model, work, count: 1, isStreamed }
  const store = (request.store ?? true) && (await deps.responseStore.stores(organizationId))
  const generating = await Generating.start(deps, call, asked)
  const { identities } = tools
  return new Turn(deps, { generating, request, items, own, store, memory, identities })
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
  if (store)
    await deps.responseStore.keep(organizationId, {
      response: writer.response,
      previousId: previous,
      input: own,
      pieces: [],
    })
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
    readonly request: Pick<ResponseRequest, "input" | "previous_response_id">
    readonly memory: Memory | null
  },
): Promise<{ items: KnownItem[]; own: KnownItem[] }> {
  const previous = request.previous_response_id ?? null
  const before =
    previous === null ? [] : await earlier(deps, organizationId, { previousId: previous, memory })
  const own = await deps.responseStore.resolve(organizationId, inputOf(request.input))
  if (before.length + own.length === 0)
    throw new Fault("invalid_request", "Cannot answer: there is no input; send text or items", {
      param: "input",
    })
  return { items: [...before, ...own], own }
}

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
    })
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
      // Without a first event it is an ordinary error.
      if (!started) throw error
      yield* events
    } finally {
      // The reader went away between two events.
      await generated?.return?.()
      leave()
    }
  }

  /** The record first, then what is kept, then the terminal event. */
  async #finish(): Promise<void> {
    const { generating, memory, items, store } = this.#facts
    const writer = this.#writer
    const used = generating.usage()
    await generating.succeed({ stopReason: writer.stopReason, toolCalls: writer.toolNames })
    writer.end(used, store)
    const kept = store && (await this.#store())
    if (kept !== store) writer.end(used, kept)
    const output = writer.output.map((item) => ({ id: item.id, item: item as InputItem }))
    memory?.remember(writer.id, [...items, ...output])
  }

  async #store(): Promise<boolean> {
    const { generating, request, own } = this.#facts
    return await this.#deps.responseStore.keep(generating.call.organizationId, {
      response: this.#writer.response,
      previousId: request.previous_response_id ?? null,
      input: own,
      pieces: this.#writer.pieces,
    })
  }

  async #fail(error: unknown): Promise<ResponseEvent[]> {
    const { generating, request, memory } = this.#facts
    const { signal } = generating.call.request
    const used = generating.usage()
    if (typeof request.previous_response_id === "string") memory?.invalidate(request.previous_response_id)
    await generating.call.fail(error)
    this.#failure = error
    // The client is gone: there is no one to send it to.
    if (signal.aborted && errorCode(signal.reason) === "client_closed") throw error
    if (this.#isCancelled) return this.#writer.cancel(used)
    const fault = error instanceof Fault ? error : null
    const code = fault && fault.status < 500 ? fault.code : "server_error"
    return this.#writer.fail({ code, message: fault?.message ?? "The response failed unexpectedly" }, used)
  }
}
