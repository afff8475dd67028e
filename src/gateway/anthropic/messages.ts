/** Answers Anthropic's Messages API: one stream of events inside, sent as they are or gathered into one message. */
import { EventStream, type Handlers, type StreamEvent } from "../../contract/endpoint.ts"
import type { anthropicEndpoints } from "../../contract/anthropic/endpoints.ts"
import type { Message, MessageEvent } from "../../contract/anthropic/messages.ts"
import { Fault } from "../../contract/errors.ts"
import {
  type Asker,
  Generating,
  type InferenceParts,
  MeteredCall,
  countPromptTokens,
  meterUsage,
} from "../openai/inference.ts"
import { noteDropped } from "../openai/tools-dropped.ts"
import { messageWork, promptWork } from "./message-work.ts"
import { MessageWriter } from "./message-writer.ts"

const versionHeader = "anthropic-version"
const versions = ["2026-10-21", "2023-06-01", "2023-01-01"]

export function anthropicHandlers(parts: InferenceParts): Handlers<typeof anthropicEndpoints> {
  return {
    createMessage: async (call) => {
      const metered = await open(parts, call, "messages")
      const body = await metered.read("messages", call.body)
      const { work, dropped } = await metered.attempt(async () => messageWork(body, metered.organizationId))
      noteDropped(call, dropped)
      const isStreamed = body.stream === true
      const asked = { model: body.model, work, count: 1, isStreamed }
      const generating = await Generating.start(parts, call, metered, asked)
      const writer = new MessageWriter(parts.ids, generating.model.sku)
      return isStreamed
        ? new EventStream(named(stream(writer, generating, call)), null)
        : await gather(writer, generating, call)
    },
    countMessageTokens: async (call) => {
      const metered = await open(parts, call, "count_tokens")
      const body = await metered.read("message_tokens", call.body)
      const { work, dropped } = await metered.attempt(async () => promptWork(body, metered.organizationId))
      noteDropped(call, dropped)
      return { input_tokens: await countPromptTokens(call, metered, { model: body.model, work }) }
    },
  }
}

/** Anthropic's clients name the version of the API with every request, and read the request's id from this header. */
async function open(
  parts: InferenceParts,
  call: Asker,
  source: "messages" | "count_tokens",
): Promise<MeteredCall> {
  const metered = new MeteredCall(parts, call, source)
  call.header?.("request-id", call.request.id)
  const version = call.request.header(versionHeader)
  return await metered.attempt(async () => {
    if (version === null || !versions.includes(version))
      throw new Fault("invalid_header", `Cannot read ${versionHeader}: send one of ${versions.join(", ")}`, {
        param: versionHeader,
      })
    return metered
  })
}

async function* named(events: AsyncIterable<MessageEvent>): AsyncGenerator<StreamEvent> {
  for await (const event of events) yield { name: event.type, value: event }
}

async function* stream(
  writer: MessageWriter,
  generating: Generating,
  { request }: Asker,
): AsyncGenerator<MessageEvent> {
  const [run] = generating.runs(request.signal)
  const generated = run?.[Symbol.asyncIterator]()
  let settled = false
  try {
    // Until the first token the work may still move to another worker, and the region is told in a header.
    let next = await generated?.next()
    generating.call.sequence.firstByte()
    yield* writer.start(generating.usage())
    for (; next && !next.done; next = await generated?.next()) yield* writer.add(next.value)
    await settle(writer, generating)
    settled = true
    yield* writer.terminal(generating.usage())
  } catch (error) {
    if (!settled) await generating.call.fail(error, meterUsage(generating.usage()))
    settled = true
    throw error
  } finally {
    // The reader went away between two events: the model stops, and then says what it used.
    await generated?.return?.()
    if (!settled) await generating.call.fail(request.signal.reason, meterUsage(generating.usage()))
  }
}

async function gather(writer: MessageWriter, generating: Generating, { request }: Asker): Promise<Message> {
  await generating.call.attempt(
    async () => {
      for (const run of generating.runs(request.signal)) for await (const event of run) writer.add(event)
    },
    () => meterUsage(generating.usage()),
  )
  await settle(writer, generating)
  return writer.message(generating.usage())
}

async function settle(writer: MessageWriter, generating: Generating): Promise<void> {
  await generating.succeed({ stopReason: writer.stopReason, toolCalls: writer.toolNames })
}
