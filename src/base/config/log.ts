/** The log. */
import { z } from "zod"
import { logLevels } from "../log.ts"

export const LogConfig = z.strictObject({
  level: z.enum(logLevels).default("info").describe("Lowest level that is logged."),
})
