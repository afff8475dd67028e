/** The same for the lines of every kind of batch. */
import { type BatchPath, batchPaths } from "../src/contract/openai/batches.ts"

export const everyBatchPath = <Endpoint>(endpoint: Endpoint): Record<BatchPath, Endpoint> =>
  // Of all of them.
  Object.fromEntries(batchPaths.map((path) => [path, endpoint])) as Record<BatchPath, Endpoint>
