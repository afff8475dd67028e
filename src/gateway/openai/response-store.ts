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
import {
  type InputItem,
  type ItemReference,
  MessageItem,
  type ResponseEvent,
  type ResponseObject,
} from "../../contract/openai/responses.ts"
import { type ContentCipher, openText, sealText } from "../../store/content/cipher.ts"
import { openJson, sealJson } from "../../store/content/sealed-json.ts"
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
  saveStoredResponse,
  storedCharactersMax,
  type StoredResponse,
  storedDaysDefault,
} from "../../store/responses.ts"
import type { Database } from "../../store/sql.ts"
import { type ListPage, pageOf } from "../batches/files.ts"
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

export interface ResponseStoreDeps {
  readonly organizations: Pick<Organizations, "of">
  readonly database: Database
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  /** What is stored is encrypted. */
  readonly cipher: ContentCipher
  readonly hasRowSpace: (bytes: number) => boolean
  /** The deadline of a request. */
  readonly timeoutMs: number
}

interface Kept {
  readonly response: ResponseObject
  readonly previousId: string | null
  readonly input: readonly KnownItem[]
  /** How its stream was cut. */
  readonly pieces: Pieces
  /** It was stored when it began. */
  readonly hasBegun?: boolean
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

  /** Returns whether it was stored: an answer that cannot be kept, or is too much to keep, is still an answer. */
  async keep(
    organizationId: string,
    { response, previousId, input, pieces, hasBegun = false }: Kept,
  ): Promise<boolean> {
    const { database, clock, log, cipher, hasRowSpace } = this.#deps
    const items = [...input, ...response.output.map((item) => ({ id: item.id, item }))]
    const place = (seqId: string) => ({ organizationId, seqId })
    const [body, asked, cut, ...said] = await sealJson(cipher, organizationId, [
      { place: place(`${response.id} body`), value: response },
      { place: place(`${response.id} input`), value: input },
      { place: place(`${response.id} pieces`), value: pieces },
      ...items.map(({ id, item }) => ({ place: place(id), value: item })),
    ])
    if (!body || !asked || !cut) return false
    const characters = said.reduce((sum, one) => sum + one.characters, body.characters)
    if (characters > storedCharactersMax || !hasRowSpace(2 * characters)) return false
    try {
      return await saveStoredResponse(
        database,
        {
          id: response.id,
          organizationId,
          previousId,
          body: body.text,
          input: asked.text,
          pieces: cut.text,
          createdAt: new Date(clock.nowMs()),
        },
        { items: items.map(({ id }, at) => ({ id, item: said[at]?.text ?? "" })), hasBegun },
      )
    } catch (error) {
      log.error({ err: error, response_id: response.id }, "a response could not be stored")
      return false
    }
  }

  async response(organizationId: string, id: string): Promise<ResponseObject> {
    const running = this.#running.get(id)
    if (running?.organizationId === organizationId) return running.response()
    const [response] = await this.#stored(organizationId, id, ["body"])
    return this.#told(response)
  }

  /** One that was begun in the background, and that no gateway can be writing any more, has failed. */
  #told<Known extends Pick<ResponseObject, "status" | "created_at">>(
    response: Known,
  ): Known | (Known & Pick<ResponseObject, "status" | "error">) {
    const { clock, timeoutMs } = this.#deps
    if (response.status !== "in_progress") return response
    const lostMs = response.created_at * 1000 + timeoutMs + endingMs
    if (clock.nowMs() < lostMs) return response
    const error = { code: "server_error", message: "The server that wrote the response ended" }
    return { ...response, status: "failed" as const, error }
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
    const [response, pieces] = await this.#stored(organizationId, id, ["body", "pieces"])
    return replay(ended(this.#told(response)), pieces, first)
  }

  async remove(organizationId: string, id: string): Promise<void> {
    this.cancelHere(organizationId, id)
    if (!(await deleteStoredResponse(this.#deps.database, organizationId, id))) throw notStored()
  }

  async cancel(organizationId: string, id: string): Promise<ResponseObject> {
    const here = this.cancelHere(organizationId, id)
    if (here) return here
    const now = new Date(this.#deps.clock.nowMs())
    const stored = await findStoredResponse(this.#deps.database, organizationId, id, now)
    const opened = stored && (await this.#opened(stored, ["body"]))
    const isRunning = !opened || this.#told(opened[0]).status === "in_progress"
    const elsewhere = isRunning ? await this.#elsewhere?.cancel(organizationId, id) : null
    if (elsewhere) return elsewhere
    if (stored) throw new Fault("response_not_running", "Cannot cancel the response: it has already ended")
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
    const { database, log, cipher } = this.#deps
    this.#elsewhere = await openRemoteCancel({
      database,
      log,
      cipher,
      attemptsMax,
      cancelHere: (organizationId, id) => this.cancelHere(organizationId, id),
    })
    return this.#elsewhere
  }

  async inputItems(organizationId: string, id: string, query: ListPage) {
    const [input] = await this.#stored(organizationId, id, ["input"])
    const page = pageOf(input, query)
    return { ...page, data: page.data.map(toWireItem) }
  }

  /** Everything said in a stored response and before it. */
  async conversation(organizationId: string, id: string): Promise<KnownItem[]> {
    const now = new Date(this.#deps.clock.nowMs())
    const stored = isResponse(id)
      ? await findConversation(this.#deps.database, organizationId, id, now)
      : null
    const opened = await openJson(
      this.#deps.cipher,
      organizationId,
      (stored ?? []).flatMap((one) => [
        { place: placeOf(one, "input"), text: one.input },
        { place: placeOf(one, "body"), text: one.body, fields: ["status", "created_at", "output"] },
      ]),
    )
    if (!stored || opened.includes(undefined))
      throw new Fault(
        "previous_response_not_found",
        `Cannot continue ${id.slice(0, 128)}: no such response is stored; send the conversation instead`,
        { param: "previous_response_id" },
      )
    return stored.flatMap((_, at) => {
      const input = opened[2 * at] as Stored["input"]
      const body = opened[2 * at + 1] as Pick<ResponseObject, "status" | "created_at" | "output">
      const { output } = ended(this.#told(body))
      return [...input, ...output.map((item) => ({ id: item.id, item: item as InputItem }))]
    })
  }

  /** Gives each item its id, and puts stored items in the place of references to them. */
  async resolve(organizationId: string, items: readonly InputItem[]): Promise<KnownItem[]> {
    const { database, clock, ids, cipher } = this.#deps
    const references = items.filter(isReference).map(({ id }) => id)
    const found = new Map<string, InputItem>()
    if (references.length > 0) {
      const stored = await findStoredItems(database, organizationId, references, new Date(clock.nowMs()))
      const opened = await openJson(
        cipher,
        organizationId,
        stored.map(({ id, item }) => ({ place: { organizationId, seqId: id }, text: item })),
      )
      for (const [at, item] of opened.entries())
        if (item !== undefined) found.set(stored[at]?.id ?? "", item as InputItem)
    }
    return items.map((item) => {
      if (!isReference(item)) return { id: ids.next(idPrefixOf(item)), item }
      return { id: item.id, item: found.get(item.id) ?? item }
    })
  }

  async #stored<const Columns extends readonly Column[]>(
    organizationId: string,
    id: string,
    columns: Columns,
  ): Promise<Read<Columns>> {
    const now = new Date(this.#deps.clock.nowMs())
    const stored = isResponse(id)
      ? await findStoredResponse(this.#deps.database, organizationId, id, now)
      : null
    const opened = stored && (await this.#opened(stored, columns))
    if (!opened) throw notStored()
    return opened
  }

  /** Null when it cannot be decrypted: its key is gone. */
  async #opened<const Columns extends readonly Column[]>(
    stored: StoredResponse,
    columns: Columns,
  ): Promise<Read<Columns> | null> {
    const opened = await openJson(
      this.#deps.cipher,
      stored.organizationId,
      columns.map((column) => ({ place: placeOf(stored, column), text: stored[column] ?? "null" })),
    )
    // Written by `keep`.
    return opened.includes(undefined) ? null : (opened as unknown as Read<Columns>)
  }
}

/** What `keep` writes, by column. */
interface Stored {
  readonly body: ResponseObject
  readonly input: readonly KnownItem[]
  readonly pieces: Pieces | null
}
type Column = keyof Stored
type Read<Columns extends readonly Column[]> = { readonly [At in keyof Columns]: Stored[Columns[At]] }

const placeOf = ({ id, organizationId }: StoredResponse, column: Column) => ({
  organizationId,
  seqId: `${id} ${column}`,
})

/** Completions of chat lie beside responses. */
const isResponse = (id: string): boolean => id.startsWith("resp_")

/** What a gateway gets to store a response after its time is up. */
const endingMs = 30_000

/** What is still written has no stream to send again, and cannot be continued. */
function ended<Known extends Pick<ResponseObject, "status">>(response: Known): Known {
  if (response.status !== "in_progress") return response
  throw new Fault(
    "response_in_progress",
    "Cannot use the response: it is still being written; ask for it until it has ended",
  )
}

// Only the store writes what this reads.
const readResponse = (text: string): ResponseObject => JSON.parse(text)

function isReference(item: InputItem): item is z.infer<typeof ItemReference> {
  const { type }: { type?: unknown } = item
  return (
    (type === "item_reference" || type === undefined || type === null) && !MessageItem.safeParse(item).success
  )
}

function idPrefixOf({ type }: InputItem) {
  switch (type) {
    case "function_call":
      return "fc"
    case "function_call_output":
      return "fco"
    case "custom_tool_call":
      return "ctc"
    case "custom_tool_call_output":
      return "ctco"
    case "tool_search_call":
    case "tool_search_output":
      return "tsc"
    case "shell_call":
    case "shell_call_output":
      return "sh"
    case "local_shell_call":
    case "local_shell_call_output":
      return "lsh"
    case "apply_patch_call":
    case "apply_patch_call_output":
      return "apc"
    case "compaction":
      return "cmp"
    case "reasoning":
      return "rs"
    default:
      return "msg"
  }
}

/** What is listed was read, so that it is completed unless it says otherwise. */
export function toWireItem({ id, item }: KnownItem): Record<string, unknown> & { readonly id: string } {
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

interface RemoteCancel {
  /** The response as another gateway cancelled it; null when none writes it. */
  cancel(organizationId: string, id: string): Promise<ResponseObject | null>
  close(): Promise<void>
}

interface RemoteCancelDeps {
  readonly database: Database
  readonly log: Log
  readonly cipher: ContentCipher
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

async function openRemoteCancel(deps: RemoteCancelDeps): Promise<RemoteCancel> {
  const { database, log, cipher, attemptsMax = attemptsMaxDefault } = deps
  const answers = new EventEmitter()
  answers.setMaxListeners(0)
  const receive = ({ kind, responseId: id, organizationId }: CancellationMessage): void => {
    if (kind === "cancelled") return void answers.emit(id)
    const response = deps.cancelHere(organizationId, id)
    if (response)
      answerCancellation(
        database,
        id,
        organizationId,
        sealText(cipher, { organizationId, seqId: `${id} cancelled` }, JSON.stringify(response)),
      ).catch((error: unknown) =>
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
      const opened =
        body === null ? null : openText(cipher, { organizationId, seqId: `${id} cancelled` }, body)
      return opened === null ? null : readResponse(opened)
    },
    close,
  }
}
