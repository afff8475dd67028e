/** Runs the lines of a part of a batch, some at a time: each as the request that it is, with its result written as a line. */
import { setTimeout as wait } from "node:timers/promises"
import { derivedId } from "../../base/ids.ts"
import { mapConcurrent } from "../../base/lists.ts"
import type { Principal, Membership } from "../../contract/access.ts"
import { type Call, EncodedJson, type Surface, costHeader } from "../../contract/endpoint.ts"
import { Fault, statusOn } from "../../contract/errors.ts"
import { anthropicVersionDefault, anthropicVersionHeader } from "../../contract/headers.ts"
import type { BatchPath } from "../../contract/openai/batches.ts"
import { languageHeader } from "../../contract/language.ts"
import { stagesHeader } from "../../contract/platform/virtual-models.ts"
import { abstainedHeader, setHeader, trialHeader, trialMetadata } from "../../contract/question-sets/sets.ts"
import type { Batch, BatchPart } from "../../store/batches/batches.ts"
import type { FileStorage } from "../../store/files/storage.ts"
import type { LiveTraffic } from "../routing/queue.ts"
import { type BatchLine, readLines } from "./lines.ts"

/** Who made the batch, and for which organization. */
export interface BatchCaller {
  readonly principal: Principal
  readonly membership: Membership
}

/** As a batch's row holds it. */
interface StoredCaller {
  readonly principal: Principal
  readonly standing: Membership
}

export function writeCaller({ principal, membership }: BatchCaller): string {
  return JSON.stringify({ principal, standing: membership } satisfies StoredCaller)
}

function readCaller(text: string): BatchCaller {
  // True: `writeCaller` wrote it.
  const { principal, standing } = JSON.parse(text) as StoredCaller
  return { principal, membership: standing }
}

export interface LineEndpoint {
  readonly surface: Exclude<Surface, "oauth" | "mcp">
  readonly handler: (call: Call<{}, {}, Uint8Array>) => Promise<unknown>
}

export interface LineDeps {
  /** The caller as it is now; null when it may no longer run inference there. */
  readonly callerNow: (caller: BatchCaller) => Promise<BatchCaller | null>
  readonly endpoints: Readonly<Record<BatchPath, LineEndpoint>>
  /** The body of an error as the server would answer it. */
  readonly errorBody: (surface: LineEndpoint["surface"], fault: Fault) => unknown
  readonly timeoutMs: number
  readonly liveTraffic: Pick<LiveTraffic, "enterLine">
}

export interface LineRequest {
  readonly batchId: string
  readonly endpoint: BatchPath
  readonly caller: BatchCaller
  readonly line: BatchLine
  /** The time that the line is charged to: the same however often it runs. */
  readonly startedMs: number
  /** Of a batch that evaluates: its lines are no traffic of a question set. */
  readonly isTrial: boolean
}

export interface LineResult {
  readonly isSuccess: boolean
  readonly text: string
}

/** The account cannot pay, or the caller may no longer ask: neither this line nor, as far as can be told, the next. */
class BatchRefused extends Error {
  readonly fault: Fault

  constructor(fault: Fault) {
    super(fault.message)
    this.fault = fault
  }
}

/** It would be so again. */
class LateLine extends Fault {
  constructor() {
    super("inference_failed", "Cannot answer in time: the deadline of the request passed")
  }
}

class CallerGone extends Fault {
  constructor() {
    super(
      "permission_denied",
      "Cannot go on with the batch: the key or member that made it may no longer run inference",
    )
  }
}

const attemptsMax = 6
/** What time alone mends: the time that the batch has is the bound. */
const waitedFor: readonly string[] = ["overloaded", "rate_limited"]
const pauseMsMin = 500
const pauseMsMax = 30_000
const paymentRequired = 402

interface LineSignals {
  /** Ends what runs. */
  readonly stop: AbortSignal
  /** Lets what runs come to its end, and begins nothing more; aborted with `stop`. */
  readonly halt: AbortSignal
}

/**
 * Null when it was halted before it ran to its end. Throws BatchRefused, or the reason of `stop`. What fails for the moment is
 * tried again; a line that finds every worker full, or a limit a minute used up, waits for as long as its batch has time.
 */
export async function runLine(
  deps: LineDeps,
  request: LineRequest,
  { stop, halt }: LineSignals,
): Promise<LineResult | null> {
  for (let attempt = 1; ;) {
    const leave = await deps.liveTraffic.enterLine(halt).catch(() => null)
    stop.throwIfAborted()
    if (!leave) return null
    try {
      const { body, ...told } = await callEndpoint(deps, request, stop)
      return { isSuccess: true, text: resultLine(request, 200, { body, told }) }
    } catch (error) {
      stop.throwIfAborted()
      const fault = error instanceof Fault ? error : unexpected(error)
      if (fault.status === paymentRequired || fault instanceof CallerGone) throw new BatchRefused(fault)
      const isPassing = (fault.status === 429 || fault.status >= 500) && !(fault instanceof LateLine)
      const isCounted = !waitedFor.includes(fault.code)
      if (!isPassing || (isCounted && attempt === attemptsMax)) return failed(deps, request, fault)
      if (isCounted) attempt++
      leave()
      const pauseMs = fault.retryAfterMs ?? pauseMsMin * 2 ** attempt
      await wait(Math.min(pauseMs, pauseMsMax), undefined, { signal: halt }).catch(() => undefined)
    } finally {
      leave()
    }
  }
}

/** What is said besides the answers, of a set, of what they cost and of stages, is in the headers of a response, and so in the result of a line. */
const keptHeaders: readonly string[] = [setHeader, abstainedHeader, costHeader, stagesHeader, languageHeader]

interface Answered {
  readonly body: string
  readonly headers: Readonly<Record<string, string>>
  readonly ms: number
}

async function callEndpoint(deps: LineDeps, request: LineRequest, signal: AbortSignal): Promise<Answered> {
  const deadline = new AbortController()
  const timer = setTimeout(() => deadline.abort(new LateLine()), deps.timeoutMs)
  try {
    const caller = await deps.callerNow(request.caller)
    if (!caller) throw new CallerGone()
    const headers: Record<string, string> = {}
    const call = {
      ...callOf({ ...request, caller }, AbortSignal.any([signal, deadline.signal])),
      header: (name: string, value: string): void => {
        if (keptHeaders.includes(name)) headers[name] = value
      },
    }
    const startedMs = performance.now()
    const output = await deps.endpoints[request.endpoint].handler(call)
    const body = output instanceof EncodedJson ? output.text : JSON.stringify(output)
    return { body, headers, ms: performance.now() - startedMs }
  } finally {
    clearTimeout(timer)
  }
}

function callOf(request: LineRequest, signal: AbortSignal): Omit<Call<{}, {}, Uint8Array>, "header"> {
  const { caller, line, startedMs, isTrial } = request
  return {
    params: {},
    query: {},
    body: Buffer.from(line.body),
    principal: caller.principal,
    membership: caller.membership,
    request: {
      id: idOf("req", request),
      ip: "",
      userAgent: null,
      startedMs,
      header: (name) => {
        if (name === anthropicVersionHeader) return anthropicVersionDefault
        return isTrial && name === trialHeader ? "true" : null
      },
      signal,
      sequenceId: idOf("seq", request),
      isBatch: true,
    },
    idempotency: null,
  }
}

const idOf = (prefix: string, { batchId, line, startedMs }: LineRequest): string =>
  derivedId(prefix, startedMs, `${batchId}:${line.line}`)

const unexpected = (cause: unknown): Fault =>
  new Fault("internal", "Cannot answer the request: an unexpected failure", { cause })

function failed(deps: LineDeps, request: LineRequest, fault: Fault): LineResult {
  const { surface } = deps.endpoints[request.endpoint]
  const body = JSON.stringify({ error: deps.errorBody(surface, fault) })
  return { isSuccess: false, text: resultLine(request, statusOn(surface, fault.code), { body }) }
}

/** A line break in JSON stands only between values. */
function resultLine(
  request: LineRequest,
  status: number,
  { body, told }: { body: string; told?: Pick<Answered, "headers" | "ms"> | undefined },
): string {
  const head = JSON.stringify({ id: idOf("batch_req", request), custom_id: request.line.customId })
  const id = JSON.stringify(idOf("req", request))
  // Beside what decisions cost: others are not compared by it, and their lines stay the same from run to run.
  const isCosted = told?.headers[costHeader] !== undefined
  const latency = isCosted ? `"latency_ms":${Math.round(told.ms * 10) / 10},` : ""
  const isTold = told !== undefined && Object.keys(told.headers).length > 0
  const headers = isTold ? `"headers":${JSON.stringify(told.headers)},` : ""
  const response = `{"status_code":${status},"request_id":${id},${latency}${headers}"body":${body}}`
  return `${head.slice(0, -1)},"response":${response},"error":null}`.replaceAll(/[\r\n]/g, " ")
}

/** Of a line that was not run, or not to its end. */
export function unrunLine(
  request: Omit<LineRequest, "caller" | "endpoint" | "isTrial">,
  error: { readonly code: string; readonly message: string },
): string {
  const id = derivedId("batch_req", request.startedMs, `${request.batchId}:${request.line.line}`)
  return JSON.stringify({ id, custom_id: request.line.customId, response: null, error })
}

export interface PartDeps extends LineDeps {
  readonly storage: FileStorage
}

export interface RanPart {
  readonly lines: readonly BatchLine[]
  /** By line; null for those that were not run to their end. */
  readonly results: readonly (LineResult | null)[]
  /** Why the batch must stop. */
  readonly refused: { readonly error: BatchRefused; readonly line: number } | null
}

export async function readPartLines(
  { storage }: Pick<PartDeps, "storage">,
  batch: Batch,
  { part, signal }: { part: Pick<BatchPart, "firstLine" | "start" | "length">; signal: AbortSignal },
): Promise<readonly BatchLine[]> {
  const { organizationId, endpoint, inputSha256: sha256 } = batch
  const range = { start: Number(part.start), length: Number(part.length) }
  const pieces: Uint8Array[] = []
  for await (const piece of storage.read({ organizationId, sha256: sha256 ?? "" }, range)) pieces.push(piece)
  const job = { endpoint, bytes: Buffer.concat(pieces), firstLine: part.firstLine, withBodies: true }
  return (await readLines(organizationId, job, signal)).lines
}

export async function runPart(
  deps: PartDeps,
  { batch, part }: { batch: Batch; part: BatchPart },
  { concurrency, signals }: { concurrency: number; signals: LineSignals },
): Promise<RanPart> {
  const { stop, halt } = signals
  const lines = await readPartLines(deps, batch, { part, signal: stop })
  const caller = readCaller(batch.principal)
  const startedMs = part.startedAt?.getTime() ?? 0
  const results: (LineResult | null)[] = lines.map(() => null)
  const refused: { of: RanPart["refused"] } = { of: null }
  const isTrial = batch.metadata?.["kind"] === trialMetadata.kind
  const run = async (line: BatchLine, index: number): Promise<void> => {
    const { endpoint, id: batchId } = batch
    try {
      results[index] = await runLine(deps, { batchId, endpoint, caller, line, startedMs, isTrial }, signals)
    } catch (error) {
      if (!(error instanceof BatchRefused)) throw error
      refused.of ??= { error, line: line.line }
    }
  }
  await mapConcurrent(lines, { concurrency }, async (line, index) => {
    if (!halt.aborted && !refused.of) await run(line, index)
  })
  // Lines that run side by side reserve more than they cost: one after the other, more can be paid for.
  for (const [index, line] of refused.of ? lines.entries() : []) {
    if (results[index]) continue
    if (halt.aborted) break
    refused.of = null
    await run(line, index)
    if (refused.of) break
  }
  return { lines, results, refused: refused.of }
}

/** What the parts' results begin with: where a line belongs. */
export const resultMark = { output: "+", error: "-", unrun: "?" } as const

export function encodeResults({ lines, results }: RanPart): string {
  return lines
    .map((line, index) => {
      const result = results[index]
      if (result) return `${result.isSuccess ? resultMark.output : resultMark.error}${result.text}\n`
      return `${resultMark.unrun}${JSON.stringify({ line: line.line, customId: line.customId, body: "" })}\n`
    })
    .join("")
}
