/** The texts in what a chat, a response or an embedding was asked and answered, so that each of them can be redacted. */
import type { ContentInput, ContentMessage } from "../../contract/content.ts"

/** Prose is what people and models write; names and ids are not. */
type ChangeText = (text: string, isProse: boolean) => string

export function changeMessage(message: ContentMessage, change: ChangeText): ContentMessage {
  const { role, content, reasoning, tool_calls, tool_call_id } = message
  return {
    role,
    content: change(content, true),
    ...(reasoning === undefined ? {} : { reasoning: change(reasoning, true) }),
    ...(tool_calls === undefined
      ? {}
      : {
          tool_calls: tool_calls.map((call) => ({
            id: change(call.id, false),
            name: change(call.name, false),
            arguments: change(call.arguments, true),
          })),
        }),
    ...(tool_call_id === undefined ? {} : { tool_call_id: change(tool_call_id, false) }),
  }
}

export function changeInput({ messages, texts }: ContentInput, change: ChangeText): ContentInput {
  return {
    messages: messages.map((message) => changeMessage(message, change)),
    texts: texts.map((text) => (text === null ? null : change(text, true))),
  }
}

/** Each text once. */
export function textsIn(
  input: ContentInput | null,
  output: readonly ContentMessage[] | null,
  isWanted: (isProse: boolean) => boolean = () => true,
): string[] {
  const found = new Set<string>()
  const note: ChangeText = (text, isProse) => {
    if (isWanted(isProse)) found.add(text)
    return text
  }
  if (input) changeInput(input, note)
  for (const message of output ?? []) changeMessage(message, note)
  return [...found]
}
