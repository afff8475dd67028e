/** The wire of what can be asked about a conversation other than to answer it: how long it is, and a summary. */
import { z } from "zod"
import { harmless, ignored, refused } from "./parameters.ts"
import { ResponseRequest, ResponseUsage } from "./responses.ts"

/** What says which prompt there is: all that counting needs. */
const { model, input, instructions, previous_response_id, tools, tool_choice } = ResponseRequest.shape
const { parallel_tool_calls, text, reasoning, truncation, conversation } = ResponseRequest.shape

export const InputTokensRequest = z
  .strictObject({
    model,
    input,
    instructions,
    previous_response_id,
    tools,
    tool_choice,
    parallel_tool_calls,
    text,
    reasoning,
    truncation,
    conversation,
    personality: ignored("the model has one"),
  })
  .meta({ id: "InputTokensRequest", description: "What a response would be asked." })
export type InputTokensRequest = z.infer<typeof InputTokensRequest>

export const InputTokens = z
  .object({ object: z.literal("response.input_tokens"), input_tokens: z.int().min(0) })
  .meta({
    id: "InputTokens",
    description: "Exact for local models; for others the most that the prompt can be.",
  })

export const CompactRequest = z
  .strictObject({
    model,
    input,
    instructions,
    previous_response_id,
    ...harmless,
    image: refused("text only"),
  })
  .meta({ id: "CompactRequest", description: "A conversation to summarise." })
export type CompactRequest = z.infer<typeof CompactRequest>

/** The user's messages as they were, then the summary of everything else. */
export const Compaction = z
  .object({
    id: z.string(),
    object: z.literal("response.compaction"),
    created_at: z.int(),
    output: z.array(z.record(z.string(), z.unknown())),
    usage: ResponseUsage,
  })
  .meta({ id: "ResponseCompaction", description: "Items to go on with in the place of the conversation." })
export type Compaction = z.infer<typeof Compaction>
