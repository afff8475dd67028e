/** Which batches stand for the models of a cascade beside its own evaluation. */
import type { BatchObject } from "../../../src/contract/openai/batches.ts"

type Listed = Pick<BatchObject, "id" | "status" | "metadata">

const cameToNothing = new Set<BatchObject["status"]>(["failed", "expired", "cancelled"])

/** The newest of each member; one that came to nothing stands for none, so that the member can be asked again. */
export function memberBatches<T extends Listed>(
  newestFirst: readonly T[],
  cascadeBatchId: string,
  members: readonly string[],
): T[] {
  return members.flatMap(
    (model) =>
      newestFirst.find(
        ({ status, metadata }) =>
          metadata?.["compared_with"] === cascadeBatchId &&
          metadata["model"] === model &&
          !cameToNothing.has(status),
      ) ?? [],
  )
}
