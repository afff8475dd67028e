/** Where this gateway stands. */
import { z } from "zod"

export const GatewayConfig = z.strictObject({
  region: z
    .string()
    .min(1)
    .optional()
    .describe("The region that this gateway stands in; without it, the first one."),
})
