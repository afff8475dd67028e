/** How batches run beside live traffic. */
import { z } from "zod"
import { whole } from "./values.ts"

export const BatchesConfig = z.strictObject({
  lines_max: whole(1, 1_000_000).default(50_000).describe("Most lines of one batch."),
  open_max: whole(1, 10_000)
    .default(100)
    .describe("Batches of one organization that may be open at once; more are refused."),
  concurrency: whole(0, 1_000)
    .default(16)
    .describe("Lines of batches that this gateway runs at once while nothing else runs; 0 runs none here."),
  beside_live_percent: whole(1, 100)
    .default(1)
    .describe(
      "Share of the time that lines of batches run, one by one, beside live requests of the last two seconds; " +
        "100 holds none back.",
    ),
})
