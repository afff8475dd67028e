/**
 * Answers Anthropic's Messages API: a request becomes work for an engine, and one stream of events is sent as it is or gathered into
 * one message.
 */
import type {
  anthropicEndpoints,
  Message,
  MessageEvent,
  ContentBlock,
  CountTokensRequest,
  InputMessage,
  MessagesRequest,
  ReadBlock,
  ShownBlock,
} from "../../contract/anthropic/messages.ts"
import { isHostedBlock } from "../../contract/anthropic/messages.ts"
import { EventStream, type Handlers, type StreamEvent } from "../../contract/endpoint.ts"
import { Fault } from "../../contract/errors.ts"
import { anthropicVersionHeader, anthropicVersions } from "../../contract/headers.ts"
import type {
  ChatMessage,
  FunctionTool,
  GenerateWork,
  OutputFormat,
  ToolChoice,
} from "../../engine/engine.ts"
import type { Asker, MeteredCall } from "../metered-call.ts"
import { callIdCharactersMax, checkOffered, noteDropped, openWork } from "../openai/chat-work.ts"
import { Generating, type InferenceDeps, countPromptTokens, runInference } from "../openai/inference.ts"
import { type Shown, ShownText } from "../openai/media.ts"
import { MessageWriter } from "./message-writer.ts"

export function anthropicHandlers(deps: InferenceDeps): Handlers<typeof anthropicEndpoints> {
  return {
    createMessage: async (asker) => {
      const start = { callSource: "messages", wire: "messages", asker, check: checkVersion } as const
      return await runInference(deps, start, async (call, body) => {
        const { work, dropped } = messageWork(body, call.organizationId)
        noteDropped(call, dropped.tools, dropped.blocks)
        const isStreamed = body.stream === true
        const generating = await Generating.start(deps, call, {
          model: body.model,
          work,
          count: 1,
          isStreamed,
        })
        const writer = new MessageWriter(deps.ids, generating.model.sku)
        generating.identify(writer.id)
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
      return await runInference(deps, start, async (call, body) => {
        const { work, dropped } = promptWork(body, call.organizationId)
        noteDropped(call, dropped.tools, dropped.blocks)
        return { input_tokens: await countPromptTokens(deps, call, { model: body.model, work }) }
      })
    },
  }
}

/** Anthropic's clients name the version of the API with every request, and read the request's id from this header. */
export function checkVersion(call: Pick<MeteredCall, "request"> & Required<Pick<Asker, "header">>): void {
  call.header("request-id", call.request.id)
  const version = call.request.header(anthropicVersionHeader)
  if (anthropicVersions.some((known) => known === version)) return
  throw new Fault(
    "invalid_header",
    `Cannot read ${anthropicVersionHeader}: send one of ${anthropicVersions.join(", ")}`,
    {
      param: anthropicVersionHeader,
    },
  )
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

interface MessageWork {
  readonly work: GenerateWork
  /** What cannot run or be read here and was left out, by type. */
  readonly dropped: { readonly tools: readonly string[]; readonly blocks: readonly string[] }
}

function messageWork(request: MessagesRequest, organizationId: string): MessageWork {
  const { work, dropped } = promptWork(request, organizationId)
  return {
    dropped,
    work: {
      ...work,
      sampling: { ...work.sampling, temperature: request.temperature ?? null, topP: request.top_p ?? null },
      stop: request.stop_sequences ?? [],
      outputTokensMax: request.max_tokens,
    },
  }
}

/** What a request says about its prompt: all that counting its tokens needs. */
function promptWork(request: CountTokensRequest, organizationId: string): MessageWork {
  const { tools, dropped } = offeredTools(request)
  const hosted = request.messages.flatMap(blocksOf).filter(isHostedBlock)
  return {
    dropped: { tools: dropped, blocks: hosted.map(({ type }) => type) },
    work: {
      ...openWork,
      organizationId,
      messages: toMessages(request),
      tools,
      toolChoice: toToolChoice(request, tools),
      parallelToolCalls: !disablesParallelCalls(request),
      format: toFormat(request),
      effort: toEffort(request),
    },
  }
}

function toMessages({ system, messages }: CountTokensRequest): ChatMessage[] {
  const called = new Set<string>()
  const first: ChatMessage[] =
    system === undefined
      ? []
      : [{ role: "system", content: typeof system === "string" ? system : textsOf(system).join("\n") }]
  const said = messages.flatMap((message, index) => {
    const blocks = blocksOf(message).filter((block): block is ReadBlock => !isHostedBlock(block))
    if (message.role === "assistant") return [assistantMessage(blocks, called)]
    return userMessages(message.role, blocks, { called, index })
  })
  checkTurns(said)
  return [...first, ...said]
}

/** An answer that is begun for the model cannot be continued by a chat template. */
function checkTurns(messages: readonly ChatMessage[]): void {
  if (messages.length === 0 || messages.at(-1)?.role === "assistant")
    throw new Fault(
      "invalid_request",
      "Cannot continue the assistant's message: the conversation must end with a message of the user",
      { param: "messages" },
    )
}

const blocksOf = ({ content }: InputMessage): readonly ContentBlock[] =>
  typeof content === "string" ? [{ type: "text", text: content }] : content

const textsOf = (blocks: readonly { readonly text: string }[]): string[] => blocks.map(({ text }) => text)

/** What a message holds, block by block, joined as one turn. */
function assistantMessage(blocks: readonly ReadBlock[], called: Set<string>): ChatMessage {
  let content = ""
  let reasoning = ""
  const toolCalls: { id: string; name: string; arguments: string }[] = []
  for (const block of blocks)
    switch (block.type) {
      case "text":
        content += block.text
        break
      case "thinking":
        reasoning += block.thinking
        break
      case "tool_use":
        called.add(block.id)
        toolCalls.push({ id: block.id, name: block.name, arguments: JSON.stringify(block.input) })
        break
      case "redacted_thinking":
        break
      case "image":
      case "document":
      case "search_result":
      case "tool_result":
        throw misplaced(block.type, "assistant")
    }
  return {
    role: "assistant",
    content,
    ...(reasoning === "" ? {} : { reasoning }),
    ...(toolCalls.length === 0 ? {} : { toolCalls }),
  }
}

/** Results become messages of their own; texts that follow each other become one. */
function userMessages(
  role: "user" | "system",
  blocks: readonly ReadBlock[],
  { called, index }: { called: ReadonlySet<string>; index: number },
): ChatMessage[] {
  const messages: ChatMessage[] = []
  let said: ShownBlock[] = []
  const close = (): void => {
    if (said.length > 0) messages.push({ role, ...shownBlocks(said) })
    said = []
  }
  for (const block of blocks)
    switch (block.type) {
      case "text":
      case "image":
      case "document":
      case "search_result":
        said.push(block)
        break
      case "tool_result": {
        if (!called.has(block.tool_use_id)) throw withoutCall(block.tool_use_id, index)
        close()
        const given = block.content ?? ""
        const shown = typeof given === "string" ? { content: given } : shownBlocks(given)
        const content = block.is_error === true ? `Error: ${shown.content}` : shown.content
        messages.push({ role: "tool", toolCallId: block.tool_use_id, ...shown, content })
        break
      }
      case "tool_use":
      case "thinking":
      case "redacted_thinking":
        throw misplaced(block.type, role)
    }
  close()
  return messages
}

/** Texts and what stands between them, in one turn. */
function shownBlocks(blocks: readonly ShownBlock[]): Shown {
  const shown = new ShownText()
  show(shown, blocks)
  return shown.shown
}

function show(shown: ShownText, blocks: readonly ShownBlock[]): void {
  for (const [index, block] of blocks.entries()) {
    if (index > 0 && block.type !== "image") shown.text("\n")
    showBlock(shown, block)
  }
}

function showBlock(shown: ShownText, block: ShownBlock): void {
  switch (block.type) {
    case "text":
      return shown.text(block.text)
    case "image": {
      const { type, url = "" } = block.source
      return shown.image({ url: type === "url" ? url : dataUrl(block.source) })
    }
    case "document":
      return showDocument(shown, block)
    case "search_result":
      return shown.text([block.title, block.source, ...textsOf(block.content)].join("\n"))
    case "tool_reference":
      return shown.text(block.tool_name)
  }
}

function showDocument(shown: ShownText, { source, title }: ShownBlock & { readonly type: "document" }): void {
  if (source.type === "text") return shown.text(source.data ?? "")
  if (source.type !== "content")
    return shown.file({ file_data: dataUrl(source), filename: title ?? "document" })
  if (typeof source.content === "string") return shown.text(source.content)
  show(shown, source.content)
}

interface Bytes {
  readonly data?: string | undefined
  readonly media_type?: string | undefined
}

const dataUrl = ({ data = "", media_type = "application/octet-stream" }: Bytes): string =>
  `data:${media_type};base64,${data}`

const misplaced = (type: string, role: string): Fault =>
  new Fault("invalid_request", `Cannot use messages: a ${type} block cannot stand in a message of ${role}`, {
    param: "messages",
  })

const withoutCall = (id: string, index: number): Fault =>
  new Fault(
    "invalid_request",
    `Cannot use messages.${index}.content: unexpected tool_use_id found in tool_result blocks: ` +
      `${id.slice(0, callIdCharactersMax)}; each tool_result must have a tool_use in an earlier message`,
    { param: "messages" },
  )

function offeredTools({ tools, tool_choice }: CountTokensRequest): {
  tools: FunctionTool[]
  dropped: string[]
} {
  const offered: FunctionTool[] = []
  const dropped: string[] = []
  for (const { name, type, description, input_schema, strict } of tools ?? []) {
    if (input_schema === undefined || (typeof type === "string" && type !== "custom"))
      dropped.push(type ?? name)
    else
      offered.push({
        name,
        description: description ?? null,
        parameters: input_schema,
        strict: strict ?? false,
      })
  }
  return { tools: tool_choice?.type === "none" ? [] : offered, dropped }
}

function toToolChoice({ tool_choice }: CountTokensRequest, tools: readonly FunctionTool[]): ToolChoice {
  switch (tool_choice?.type) {
    case undefined:
    case "auto":
      return "auto"
    case "none":
      return "none"
    case "any":
      return checkOffered("required", tools)
    case "tool":
      return checkOffered({ name: tool_choice.name }, tools)
  }
}

function disablesParallelCalls({ tool_choice }: CountTokensRequest): boolean {
  if (!tool_choice || tool_choice.type === "none") return false
  return tool_choice.disable_parallel_tool_use === true
}

function toFormat({ output_config, output_format }: CountTokensRequest): OutputFormat {
  const schema = (output_config?.format ?? output_format)?.schema
  return schema ? { kind: "json_schema", name: "answer", schema, strict: true } : { kind: "text" }
}

/** Without `thinking` Anthropic's models do not think. */
function toEffort({ thinking, output_config }: CountTokensRequest): string | null {
  if (!thinking || thinking.type === "disabled") return "none"
  return output_config?.effort ?? null
}
