/** How requests find workers. */
import { z } from "zod"
import { whole } from "./values.ts"

export const RoutingConfig = z.strictObject({
  concurrency_max: whole(1, 100_000)
    .default(64)
    .describe("Concurrent requests per worker, unless the worker sets concurrency_max."),
  queue_max: whole(1, 100_000)
    .default(1024)
    .describe("Requests that may wait for one worker; more are refused with 429."),
  queue_wait_ms: whole(1, 3_600_000)
    .default(30_000)
    .describe("How long a request may wait for a worker before it is refused with 429."),
  attempt_timeout_ms: whole(10, 3_600_000)
    .default(120_000)
    .describe("How long a remote worker may take to begin its response before another one is tried."),
  health_interval_ms: whole(10, 3_600_000)
    .default(2_000)
    .describe("Time between health checks of a remote worker."),
  health_timeout_ms: whole(10, 3_600_000)
    .default(3_000)
    .describe("How long a health check may take; after two failures in a row the worker gets no requests."),
})
