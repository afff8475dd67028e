/** What a gateway and an Umpire worker say to each other: the engine ports as JSON, each answer with a digest of its bytes. */
import { hash } from "node:crypto"
import { type FaultCode, Fault, faultCatalog } from "../../contract/errors.ts"
import type { ScoreWork } from "../engine.ts"
import type { EmbedWork, GenerateWork, GenerationEvent, GenerationUsage } from "../generate/generate.ts"

/** Every message is posted here; a GET of the health path says whether the worker serves. */
export const workPath = "/umpire/work"
export const healthPath = "/healthz"
/** Said in every request and every answer. It changes when either side would misunderstand the other. */
export const protocolHeader = "x-umpire-worker-protocol"
export const protocolVersion = "2"
/** The SHA-256 of the body or of the line, so that a broken answer is never taken for a whole one. */
export const digestHeader = "x-umpire-digest"

export type WorkerRequest =
  | { readonly kind: "prepare_score" | "score"; readonly model: string; readonly work: ScoreWork }
  | { readonly kind: "prepare_generation"; readonly model: string; readonly work: GenerateWork }
  | {
      readonly kind: "generate"
      readonly model: string
      readonly work: GenerateWork
      readonly outputTokensMax: number
    }
  | { readonly kind: "prepare_embedding" | "embed"; readonly model: string; readonly work: EmbedWork }

export interface ScoreAnswer {
  readonly inputTokens: number
  /** Empty when only prepared. */
  readonly margins: readonly number[]
}

export interface GenerationSizes {
  readonly inputTokensMost: number
  readonly outputTokensMost: number
}

export interface EmbedAnswer {
  readonly inputTokens: number
  readonly vectors: readonly (readonly number[])[]
}

/** One line of a stream. Its last is `end` or `failed`; a stream without one was cut off. */
export type StreamLine =
  | { readonly kind: "event"; readonly event: GenerationEvent; readonly usage: GenerationUsage }
  | { readonly kind: "end"; readonly usage: GenerationUsage }
  | { readonly kind: "failed"; readonly error: WireError; readonly usage: GenerationUsage }

export interface WireError {
  readonly code: string
  readonly message: string
  readonly retryAfterMs?: number
}

export const digestOf = (text: string): string => hash("sha256", text, "base64")

/** A line with its digest before it. */
export function encodeLine(line: StreamLine): string {
  const text = JSON.stringify(line)
  return `${digestOf(text)} ${text}\n`
}

export function decodeLine(line: string): StreamLine {
  const at = line.indexOf(" ")
  const text = line.slice(at + 1)
  if (at < 0 || digestOf(text) !== line.slice(0, at)) throw brokenAnswer("a line is not what was sent")
  // The digest says that a worker of ours wrote it.
  return JSON.parse(text) as StreamLine
}

export function encodeError(error: unknown): WireError {
  if (!(error instanceof Fault))
    return { code: "inference_failed", message: "Cannot run the work: an unexpected failure at the worker" }
  const { code, message, retryAfterMs } = error
  return { code, message, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) }
}

/** A code that this version does not know is a failure of the worker. */
export function decodeError({ code, message, retryAfterMs }: WireError): Fault {
  const known = Object.hasOwn(faultCatalog, code) ? (code as FaultCode) : "inference_failed"
  return new Fault(known, message, retryAfterMs === undefined ? {} : { retryAfterMs })
}

/** Why the two cannot work together, or null. */
export function findMismatch(said: string | null | undefined): string | null {
  if (said === protocolVersion) return null
  return `one side speaks version ${said ?? "none"} of the worker protocol and the other ${protocolVersion}; update the older one`
}

export function brokenAnswer(found: string): Fault {
  return new Fault("invalid_worker_response", `Cannot use the answer of a worker: ${found}`)
}
