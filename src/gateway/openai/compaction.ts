/** What a compacted conversation is carried in: a summary in the place of everything before it. */
import { Fault } from "../../contract/errors.ts"

/** Tells our own from another server's, which only that one can read. */
const mark = "umpire1."

/** Opaque to clients, as the API has it; it is encoded, not encrypted: the conversation is theirs. */
export const packSummary = (summary: string): string => mark + Buffer.from(summary).toString("base64url")

/** The summary as a turn of the conversation. It is never an instruction: it says what was said. */
export function summaryOf(content: string): string {
  if (!content.startsWith(mark))
    throw new Fault(
      "invalid_request",
      "Cannot use the compaction: it was not made by this server; send the conversation instead",
      { param: "input" },
    )
  const summary = Buffer.from(content.slice(mark.length), "base64url").toString()
  return `Summary of the conversation so far:\n${summary}`
}
