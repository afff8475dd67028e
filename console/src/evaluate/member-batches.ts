/** Which batches stand for the models of a cascade beside its own evaluation. */
import type { BatchObject } from "../../../src/contract/openai/batches.ts"

type Listed = Pick<BatchObject, "id" | "status" | "request_counts" | "metadata">

interface Member<T> {
  readonly model: string
  /** The newest that did not come to nothing. */
  readonly batch: T | null
  /** Where there is none, the newest that did: it says why, and the member can be asked again. */
  readonly failed: T | null
}

const ended = new Set<BatchObject["status"]>(["failed", "expired", "cancelled"])

const cameToNothing = ({ status, request_counts }: Listed): boolean =>
  ended.has(status) || (status === "completed" && request_counts.completed === 0)

export function memberBatches<T extends Listed>(
  newestFirst: readonly T[],
  cascadeBatchId: string,
  members: readonly string[],
): Member<T>[] {
  return members.map((model) => {
    const own = newestFirst.filter(
      ({ metadata }) => metadata?.["compared_with"] === cascadeBatchId && metadata["model"] === model,
    )
    const batch = own.find((one) => !cameToNothing(one)) ?? null
    return { model, batch, failed: batch ? null : (own[0] ?? null) }
  })
}
