/** A version of a question set with what was taught, as a file for programs that decide without a server. */
import { z } from "zod"
import { QuestionSetContent } from "./content.ts"

/** A set has at most so many questions that are taught, each in a mebibyte or less. */
export const setFileBytesMax = 64 * 1024 * 1024

export const TaughtSetFile = z.strictObject({
  format: z.literal("umpire-set/1", { error: "This is no file of `umpire sets export`." }),
  name: z.string(),
  version: z.int().positive(),
  hash: z.string(),
  content: QuestionSetContent,
  /** JSON texts; a question names its own by the SHA-256. */
  artefacts: z.array(z.string()),
})
export type TaughtSetFile = z.infer<typeof TaughtSetFile>
