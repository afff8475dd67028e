/** Answers POST /v1/responses/compact: the model summarises a conversation, and the summary takes its place. */
import type { Handler } from "../../contract/endpoint.ts"
import { Fault } from "../../contract/errors.ts"
import type { inferenceEndpoints } from "../../contract/openai/endpoints.ts"
import type { CompactRequest } from "../../contract/openai/response-prompts.ts"
import { MessageItem } from "../../contract/openai/responses.ts"
import type { Outcome } from "../sequence-record.ts"
import { packSummary, promptWork } from "./response-work.ts"
import { Generating, runInference } from "./inference.ts"
import { toWireItem } from "./response-store.ts"
import { toUsage } from "./response-writer.ts"
import { type ResponseDeps, conversation } from "./responses.ts"

const instructions =
  "Summarise the conversation so far for the one who continues it: what was asked, what was found and decided, what was changed, " +
  "what is left to do, and every name, path and number that is still needed. Write the summary only."
/** A summary longer than this would not save much. */
const summaryTokensMax = 2048

export function compactHandler(deps: ResponseDeps): Handler<(typeof inferenceEndpoints)["compactResponse"]> {
  return async (asker) =>
    await runInference(deps, { callSource: "compact", wire: "compact", asker }, async (call, body) => {
      const { organizationId } = call
      const { items } = await conversation(deps, organizationId, { request: body, memory: null })
      const work = summaryWork(body, items, organizationId)
      const given = { model: body.model, work, count: 1, isStreamed: false }
      const generating = await Generating.start(deps, call, given)
      let summary = ""
      let stopReason: Outcome["stopReason"] = null
      for (const run of generating.runs())
        for await (const event of run)
          if (event.kind === "text") summary += event.text
          else if (event.kind === "end") stopReason = event.reason
      checkSummary(summary, stopReason)
      const used = generating.usage()
      await generating.succeed({ stopReason, toolCalls: [] })
      const asked = items.filter(({ item }) => {
        const message = MessageItem.safeParse(item)
        return message.success && message.data.role === "user"
      })
      return {
        id: deps.ids.next("resp"),
        object: "response.compaction",
        created_at: Math.floor(deps.clock.nowMs() / 1000),
        output: [
          ...asked.map(toWireItem),
          { type: "compaction", id: deps.ids.next("cmp"), encrypted_content: packSummary(summary) },
        ],
        usage: toUsage(used),
      }
    })
}

/** What takes the place of a conversation must tell it. */
function checkSummary(summary: string, stopReason: Outcome["stopReason"]): void {
  if (stopReason === "content_filter")
    throw new Fault("guardrail_blocked", "Cannot compact the conversation: its summary is blocked")
  if (summary.trim() === "")
    throw new Fault("inference_failed", "Cannot compact the conversation: the model wrote no summary")
}

/** The conversation, then the wish for a summary as the last turn of the user; it offers no tools. */
function summaryWork(
  { instructions: given }: CompactRequest,
  items: Parameters<typeof toWireItem>[0][],
  organizationId: string,
) {
  const said = items.map(({ item }) => item)
  const wish = { type: "message" as const, role: "user" as const, content: instructions }
  const none = { tools: [], toolChoice: "none" as const }
  const work = promptWork({ instructions: given }, none, { items: [...said, wish], organizationId })
  return { ...work, outputTokensMax: summaryTokensMax, effort: "none", truncate: true }
}
