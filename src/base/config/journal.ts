/** The journal that usage waits in before it is charged. */
import { z } from "zod"
import { whole } from "./values.ts"

export const JournalConfig = z.strictObject({
  durability: z
    .enum(["process", "power"])
    .default("process")
    .describe(
      "What recorded usage survives once a response is sent: a crash of the process, or also a power cut.",
    ),
  size_max_mib: whole(1, 1_048_576)
    .default(1024)
    .describe("Most usage that may wait for the database; beyond it requests are refused."),
})
