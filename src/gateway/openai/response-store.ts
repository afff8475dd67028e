/**
 * Where responses are kept: those being written in memory, those that ended in the store for the organization's retention. Those that
 * another gateway writes are cancelled through the store.
 */
import { EventEmitter, once } from "node:events"
import type { z } from "zod"
import type { Clock } from "../../base/clock.ts"
import type { Ids } from "../../base/ids.ts"
import type { Log } from "../../base/log.ts"
import { Fault } from "../../contract/errors.ts"
import type { listInputItems } from "../../contract/openai/endpoints.ts"
import {
  type InputItem,
  type ItemReference,
  MessageItem,
  type ResponseEvent,
  type ResponseObject,
} from "../../contract/openai/responses.ts"
import { type ContentCipher, openText, sealText } from "../../store/content/cipher.ts"
import type { Organizations } from "../../store/organization-snapshot.ts"
import {
  type CancellationMessage,
  answerCancellation,
  listenToCancellations,
  requestCancellation,
  takeCancelled,
  withdrawCancellation,
  deleteStoredResponse,
  findConversation,
  findStoredItems,
  findStoredResponse,
  insertStoredResponse,
  type StoredResponse,
  storedDaysDefault,
} from "../../store/responses.ts"
import type { Database } from "../../store/sql.ts"
import { type EventLog, type Pieces, replay } from "./response-replay.ts"

/** An item of a conversation with the id that later requests may name it by. */
export interface KnownItem {
  readonly id: string
  readonly item: InputItem
}

interface Running {
  readonly organizationId: string
  /** What was sent so far, and what will be. */
  readonly log: EventLog<ResponseEvent>
  cancel(): void
  response(): ResponseObject
}

interface ResponseStoreDeps {
  readonly organizations: Pick<Organizations, "of">
  readonly database: Database
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  /** What is stored is encrypted. */
  readonly cipher: ContentCipher
}

interface Kept {
  readonly response: ResponseObject
  readonly previousId: string | null
  readonly input: readonly KnownItem[]
  /** How its stream was cut. */
  readonly pieces: Pieces
}

export class ResponseStore {
  readonly #deps: ResponseStoreDeps
  readonly #running = new Map<string, Running>()
  #elsewhere: RemoteCancel | null = null

  constructor(deps: ResponseStoreDeps) {
    this.#deps = deps
  }

  /** Whether the organization stores responses at all. */
  async stores(organizationId: string): Promise<boolean> {
    const found = await this.#deps.organizations.of(organizationId)
    return (found?.organization.storedResponsesDays ?? storedDaysDefault) > 0
  }

  /** Notes a response that is being written, until the function it answers is called. */
  enter(organizationId: string, id: string, running: Omit<Running, "organizationId">): () => void {
    this.#running.set(id, { ...running, organizationId })
    return () => void this.#running.delete(id)
  }

  /** Returns whether it was stored: an answer that cannot be kept is still an answer. */
  async keep(organizationId: string, { response, previousId, input, pieces }: Kept): Promise<boolean> {
    const { database, clock, log, cipher } = this.#deps
    const seal = (id: string, value: unknown): string =>
      sealText(cipher, { organizationId, seqId: id }, JSON.stringify(value))
    const items = [...input, ...response.output.map((item) => ({ id: item.id, item }))]
    try {
      await insertStoredResponse(
        database,
        {
          id: response.id,
          organizationId,
          previousId,
          body: seal(`${response.id} body`, response),
          input: seal(`${response.id} input`, input),
          pieces: seal(`${response.id} pieces`, pieces),
          createdAt: new Date(clock.nowMs()),
        },
        items.map(({ id, item }) => ({ id, item: seal(id, item) })),
      )
      return true
    } catch (error) {
      log.error({ err: error, response_id: response.id }, "a response could not be stored")
      return false
    }
  }

  async response(organizationId: string, id: string): Promise<ResponseObject> {
    const running = this.#running.get(id)
    if (running?.organizationId === organizationId) return running.response()
    return readResponse((await this.#stored(organizationId, id)).body)
  }

  /** The events of a response again, as they were sent or are being sent; those after a number where one is given. */
  async events(
    organizationId: string,
    id: string,
    startingAfter: number | null,
  ): Promise<AsyncIterable<ResponseEvent>> {
    const first = startingAfter === null ? 0 : startingAfter + 1
    const running = this.#running.get(id)
    if (running?.organizationId === organizationId) return running.log.from(first)
    const { body, pieces } = await this.#stored(organizationId, id)
    const cut: Pieces | null = pieces === null ? null : JSON.parse(pieces)
    return replay(readResponse(body), cut, first)
  }

  async remove(organizationId: string, id: string): Promise<void> {
    if (!(await deleteStoredResponse(this.#deps.database, organizationId, id))) throw notStored()
  }

  async cancel(organizationId: string, id: string): Promise<ResponseObject> {
    const here = this.cancelHere(organizationId, id)
    if (here) return here
    const now = new Date(this.#deps.clock.nowMs())
    const stored = await findStoredResponse(this.#deps.database, organizationId, id, now)
    if (stored) throw new Fault("response_not_running", "Cannot cancel the response: it has already ended")
    const elsewhere = await this.#elsewhere?.cancel(organizationId, id)
    if (elsewhere) return elsewhere
    throw notStored()
  }

  /** Null when this gateway does not write it. */
  cancelHere(organizationId: string, id: string): ResponseObject | null {
    const running = this.#running.get(id)
    if (running?.organizationId !== organizationId) return null
    running.cancel()
    return { ...running.response(), status: "cancelled" }
  }

  /** Where there are several gateways: responses are cancelled whichever writes them. */
  async joinGateways(attemptsMax?: number): Promise<RemoteCancel> {
    const { database, log } = this.#deps
    this.#elsewhere = await openRemoteCancel({
      database,
      log,
      attemptsMax,
      cancelHere: (organizationId, id) => this.cancelHere(organizationId, id),
    })
    return this.#elsewhere
  }

  async inputItems(
    organizationId: string,
    id: string,
    { limit, order, after }: z.output<(typeof listInputItems)["query"]>,
  ) {
    const stored = await this.#stored(organizationId, id)
    const known = readItems(stored.input)
    const ordered = order === "asc" ? known : known.toReversed()
    const start = after === undefined ? 0 : ordered.findIndex((one) => one.id === after) + 1
    const page = ordered.slice(start, start + limit)
    return {
      object: "list" as const,
      data: page.map((one) => toWireItem(one)),
      first_id: page[0]?.id ?? null,
      last_id: page.at(-1)?.id ?? null,
      has_more: start + limit < ordered.length,
    }
  }

  /** Everything said in a stored response and before it. */
  async conversation(organizationId: string, id: string): Promise<KnownItem[]> {
    const now = new Date(this.#deps.clock.nowMs())
    const stored = await findConversation(this.#deps.database, organizationId, id, now)
    const chain = stored?.map((one) => this.#opened(one)) ?? [null]
    if (!chain.every((one) => one !== null))
      throw new Fault(
        "previous_response_not_found",
        `Cannot continue ${id.slice(0, 128)}: no such response is stored; send the conversation instead`,
        { param: "previous_response_id" },
      )
    return chain.flatMap(({ input, body }) => {
      const { output } = readResponse(body)
      return [...readItems(input), ...output.map((item) => ({ id: item.id, item: item as InputItem }))]
    })
  }

  /** Gives each item its id, and puts stored items in the place of references to them. */
  async resolve(organizationId: string, items: readonly InputItem[]): Promise<KnownItem[]> {
    const { database, clock, ids, cipher } = this.#deps
    const references = items.filter(isReference).map(({ id }) => id)
    const found = new Map<string, InputItem>()
    if (references.length > 0) {
      const stored = await findStoredItems(database, organizationId, references, new Date(clock.nowMs()))
      for (const { id, item } of stored) {
        const text = openText(cipher, { organizationId, seqId: id }, item)
        if (text !== null) found.set(id, JSON.parse(text) as InputItem)
      }
    }
    return items.map((item) => {
      if (!isReference(item)) return { id: ids.next(idPrefixOf(item)), item }
      return { id: item.id, item: found.get(item.id) ?? item }
    })
  }

  async #stored(organizationId: string, id: string) {
    const now = new Date(this.#deps.clock.nowMs())
    const stored = await findStoredResponse(this.#deps.database, organizationId, id, now)
    const opened = stored && this.#opened(stored)
    if (!opened) throw notStored()
    return opened
  }

  /** Null when it cannot be decrypted: its key is gone. */
  #opened(stored: StoredResponse): Pick<StoredResponse, "body" | "input" | "pieces"> | null {
    const { id, organizationId } = stored
    const open = (column: "body" | "input" | "pieces"): string | null =>
      openText(this.#deps.cipher, { organizationId, seqId: `${id} ${column}` }, stored[column] ?? "null")
    const [body, input, pieces] = [open("body"), open("input"), open("pieces")]
    if (body === null || input === null || pieces === null) return null
    return { body, input, pieces: stored.pieces === null ? null : pieces }
  }
}

// Only the store writes what these read.
const readResponse = (text: string): ResponseObject => JSON.parse(text)
const readItems = (text: string): KnownItem[] => JSON.parse(text)

function isReference(item: InputItem): item is z.infer<typeof ItemReference> {
  const { type }: { readonly type?: unknown } = item
  return (
    (type === "item_reference" || type === undefined || type === null) && !MessageItem.safeParse(item).success
  )
}

function idPrefixOf(item: InputItem): "msg" | "fc" | "fco" | "ctc" | "ctco" | "cmp" | "rs" {
  const { type }: { readonly type?: unknown } = item
  switch (type) {
    case "function_call":
      return "fc"
    case "function_call_output":
      return "fco"
    case "custom_tool_call":
      return "ctc"
    case "custom_tool_call_output":
      return "ctco"
    case "compaction":
      return "cmp"
    case "reasoning":
      return "rs"
    default:
      return "msg"
  }
}

/** What is listed was read, so that it is completed unless it says otherwise. */
export function toWireItem({ id, item }: KnownItem): Record<string, unknown> {
  const status = ("status" in item ? item.status : null) ?? "completed"
  const message = MessageItem.safeParse(item)
  if (!message.success) return { ...item, id, status }
  const { role, content } = message.data
  const parts = typeof content === "string" ? [{ type: "input_text", text: content }] : content
  return {
    ...item,
    id,
    type: "message",
    role,
    status,
    content: role === "assistant" ? parts.map(toOutputPart) : parts,
  }
}

/** What an assistant said is output, also where the client sends it back. */
function toOutputPart(part: object): Record<string, unknown> {
  if ("refusal" in part) return { ...part }
  return { annotations: [], logprobs: [], ...part, type: "output_text" }
}

const notStored = (): Fault =>
  new Fault("not_found", "Cannot find the response: no such id is stored for this organization")

export interface RemoteCancel {
  /** The response as another gateway cancelled it; null when none writes it. */
  cancel(organizationId: string, id: string): Promise<ResponseObject | null>
  close(): Promise<void>
}

interface RemoteCancelDeps {
  readonly database: Database
  readonly log: Log
  /** How often it is asked for before it counts as written by no gateway. */
  readonly attemptsMax?: number | undefined
  /** Cancels a response that this gateway writes; null when it does not. */
  cancelHere(organizationId: string, id: string): ResponseObject | null
}

/** A gateway that writes the response answers in milliseconds; a notification that was lost is sent again. */
const answerWaitMs = 250
const attemptsMaxDefault = 8

/** What is notified is split at colons, so nothing else may be an id. */
const responseIdForm = /^resp_[0-9a-z]{26}$/

export async function openRemoteCancel(deps: RemoteCancelDeps): Promise<RemoteCancel> {
  const { database, log, attemptsMax = attemptsMaxDefault } = deps
  const answers = new EventEmitter()
  answers.setMaxListeners(0)
  const receive = ({ kind, responseId: id, organizationId }: CancellationMessage): void => {
    if (kind === "cancelled") return void answers.emit(id)
    const response = deps.cancelHere(organizationId, id)
    if (response)
      answerCancellation(database, id, organizationId, JSON.stringify(response)).catch((error: unknown) =>
        log.warn({ err: error }, "a cancelled response could not be told to its gateway"),
      )
  }
  const close = await listenToCancellations(database, receive)
  return {
    async cancel(organizationId, id) {
      if (!responseIdForm.test(id)) return null
      let body: string | null = null
      try {
        for (let attempt = 0; body === null && attempt < attemptsMax; attempt++) {
          const answered = once(answers, id, { signal: AbortSignal.timeout(answerWaitMs) }).catch(
            () => undefined,
          )
          await requestCancellation(database, id, organizationId)
          await answered
          body = await takeCancelled(database, id, organizationId)
        }
      } finally {
        if (body === null) await withdrawCancellation(database, id, organizationId)
      }
      return body === null ? null : readResponse(body)
    },
    close,
  }
}
