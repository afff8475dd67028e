/** Where this gateway stands. */
import { z } from "zod"

export const GatewayConfig = z.strictObject({
  region: z.string().min(1).optional().describe("The region of this gateway; defaults to the first region."),
})
