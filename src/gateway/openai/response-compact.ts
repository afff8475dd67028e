/** Answers POST /v1/responses/compact: the model summarises a conversation, and the summary takes its place. */
import type { Handler } from "../../contract/endpoint.ts"
import type { inferenceEndpoints } from "../../contract/openai/endpoints.ts"
import { MessageItem } from "../../contract/openai/responses.ts"
import type { Outcome } from "../meter.ts"
import { checkSummary, packSummary, summaryWork } from "./response-work.ts"
import { Generating, runInference } from "./inference.ts"
import { toWireItem } from "./response-store.ts"
import { toUsage } from "./response-writer.ts"
import { type ResponseDeps, conversation } from "./responses.ts"

export function compactHandler(deps: ResponseDeps): Handler<(typeof inferenceEndpoints)["compactResponse"]> {
  return async (asker) =>
    await runInference(deps, { callSource: "compact", wire: "compact", asker }, async (call, body) => {
      const { organizationId } = call
      const { items } = await conversation(deps, organizationId, { request: body, memory: null })
      const said = items.map(({ item }) => item)
      const work = summaryWork(body, said, organizationId)
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
