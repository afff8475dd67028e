/** Who may read the metrics, and where. */
import { z } from "zod"
import { secret } from "../config-models.ts"
import { whole } from "./values.ts"

export const MetricsConfig = z.strictObject({
  host: z.string().min(1).default("127.0.0.1").describe("Address that metrics.port listens on."),
  port: whole(0, 65535)
    .optional()
    .describe("Port of its own for /metrics, which the main one then does not have; 0 picks a free one."),
  token: secret("Bearer value that readers of /metrics must send; without it anyone who reaches it may."),
})
