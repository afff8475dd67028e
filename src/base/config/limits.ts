/** How often each principal may ask. */
import { z } from "zod"
import { whole } from "./values.ts"

export const LimitsConfig = z.strictObject({
  requests_per_minute: whole(1, 10_000_000)
    .default(6000)
    .describe("Sustained requests a minute for each principal."),
  burst: whole(1, 10_000_000).default(1000).describe("Requests allowed at once."),
})
