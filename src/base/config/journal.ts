/** The journal that usage waits in before it is charged. */
import { z } from "zod"
import { whole } from "./values.ts"

export const JournalConfig = z.strictObject({
  durability: z
    .enum(["process", "power"])
    .default("process")
    .describe("When an answer may leave: its usage survives the process, or a power cut too."),
  size_max_mib: whole(1, 1_048_576)
    .default(1024)
    .describe("Usage that may wait for the database; beyond it requests are refused."),
})
