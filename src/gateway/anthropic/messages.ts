/** Answers Anthropic's Messages API: one stream of events inside, sent as they are or gathered into one message. */
import { EventStream, type Handlers, type StreamEvent } from "../../contract/endpoint.ts"
import type { anthropicEndpoints } from "../../contract/anthropic/endpoints.ts"
import type { Message, MessageEvent } from "../../contract/anthropic/messages.ts"
import { Fault } from "../../contract/errors.ts"
import type { MeteredCall } from "../metered-call.ts"
import { Generating, type InferenceParts, countPromptTokens, runInference } from "../openai/inference.ts"
import { noteDropped } from "../openai/tools-dropped.ts"
import { messageWork, promptWork } from "./message-work.ts"
import { MessageWriter } from "./message-writer.ts"

const versionHeader = "anthropic-version"
const versions = ["2026-10-21", "2023-06-01", "2023-01-01"]

export function anthropicHandlers(parts: InferenceParts): Handlers<typeof anthropicEndpoints> {
  return {
    createMessage: async (asker) => {
      const start = { callSource: "messages", wire: "messages", asker, check: checkVersion } as const
      return await runInference(parts, start, async (call, body) => {
        const { work, dropped } = messageWork(body, call.organizationId)
        noteDropped(call, dropped)
        const isStreamed = body.stream === true
        const generating = await Generating.start(parts, call, {
          model: body.model,
          work,
          count: 1,
          isStreamed,
        })
        const writer = new MessageWriter(parts.ids, generating.model.sku)
        return isStreamed
          ? new EventStream(named(stream(writer, generating)), null)
          : await gather(writer, generating)
      })
    },
    countMessageTokens: async (asker) => {
      const start = {
        callSource: "count_tokens",
        wire: "message_tokens",
        asker,
        check: checkVersion,
      } as const
      return await runInference(parts, start, async (call, body) => {
        const { work, dropped } = promptWork(body, call.organizationId)
        noteDropped(call, dropped)
        return { input_tokens: await countPromptTokens(parts, call, { model: body.model, work }) }
      })
    },
  }
}

/** Anthropic's clients name the version of the API with every request, and read the request's id from this header. */
function checkVersion(call: MeteredCall): void {
  call.header("request-id", call.request.id)
  const version = call.request.header(versionHeader)
  if (version !== null && versions.includes(version)) return
  throw new Fault("invalid_header", `Cannot read ${versionHeader}: send one of ${versions.join(", ")}`, {
    param: versionHeader,
  })
}

async function* named(events: AsyncIterable<MessageEvent>): AsyncGenerator<StreamEvent> {
  for await (const event of events) yield { name: event.type, value: event }
}

async function* stream(writer: MessageWriter, generating: Generating): AsyncGenerator<MessageEvent> {
  const [run] = generating.runs()
  const generated = run?.[Symbol.asyncIterator]()
  try {
    // Until the first token the work may still move to another worker, and the region is told in a header.
    let next = await generated?.next()
    generating.call.sequence.firstByte()
    yield* writer.start(generating.usage())
    for (; next && !next.done; next = await generated?.next()) yield* writer.add(next.value)
    await settle(writer, generating)
    yield* writer.terminal(generating.usage())
  } finally {
    // The reader may have gone away between two events: the model stops, and then says what it used.
    await generated?.return?.()
  }
}

async function gather(writer: MessageWriter, generating: Generating): Promise<Message> {
  for (const run of generating.runs()) for await (const event of run) writer.add(event)
  await settle(writer, generating)
  return writer.message(generating.usage())
}

async function settle(writer: MessageWriter, generating: Generating): Promise<void> {
  await generating.succeed({ stopReason: writer.stopReason, toolCalls: writer.toolNames })
}
