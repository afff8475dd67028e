/** Cancels responses that other gateways write, and those that they ask for, through the store. */
import { EventEmitter, once } from "node:events"
import type { Log } from "../../base/log.ts"
import type { ResponseObject } from "../../contract/openai/responses.ts"
import {
  type CancellationMessage,
  answerCancellation,
  listenToCancellations,
  requestCancellation,
  takeCancelled,
  withdrawCancellation,
} from "../../store/response-cancellations.ts"
import type { Database } from "../../store/sql.ts"

export interface RemoteCancel {
  /** The response as another gateway cancelled it; null when none writes it. */
  cancel(organizationId: string, id: string): Promise<ResponseObject | null>
  close(): Promise<void>
}

interface RemoteCancelParts {
  readonly database: Database
  readonly log: Log
  /** How often it is asked for before nobody writes it. */
  readonly attemptsMax?: number | undefined
  /** Cancels a response that this gateway writes; null when it does not. */
  cancelHere(organizationId: string, id: string): ResponseObject | null
}

/** A gateway that writes the response answers in milliseconds; a notification that was lost is sent again. */
const answerWaitMs = 250
const attemptsMaxDefault = 8

/** What is notified is split at colons, so nothing else may be an id. */
const responseIdForm = /^resp_[0-9a-z]{26}$/

export async function openRemoteCancel(parts: RemoteCancelParts): Promise<RemoteCancel> {
  const { database, log, attemptsMax = attemptsMaxDefault } = parts
  const answers = new EventEmitter()
  answers.setMaxListeners(0)
  const receive = ({ kind, responseId: id, organizationId }: CancellationMessage): void => {
    if (kind === "cancelled") return void answers.emit(id)
    const response = parts.cancelHere(organizationId, id)
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
      // It was a response when it was cancelled.
      return body === null ? null : (JSON.parse(body) as ResponseObject)
    },
    close,
  }
}
