/** A conversation that is opened in the chat: from the kept content of a request, by a link of this browser. */
import { packJson, unpackJson } from "./keep.ts"
import type { ChatMessage } from "./stream.ts"

export interface ChatDraft {
  readonly model: string
  readonly system: string
  readonly messages: readonly ChatMessage[]
  /** What is to be sent next. */
  readonly text: string
}

export const packChat = async (draft: ChatDraft): Promise<string> => await packJson(draft)

/** Null when the text is not a conversation. */
export async function unpackChat(packed: string): Promise<ChatDraft | null> {
  const given = await unpackJson(packed)
  if (typeof given !== "object" || given === null) return null
  const { model, system, messages, text } = given as Record<string, unknown>
  if (!Array.isArray(messages)) return null
  return {
    model: textOf(model),
    system: textOf(system),
    messages: (messages as { role?: unknown; content?: unknown }[]).flatMap((one) => {
      const role = one?.role === "user" || one?.role === "assistant" ? one.role : null
      return role && typeof one.content === "string" ? [{ role, content: one.content }] : []
    }),
    text: textOf(text),
  }
}

const textOf = (value: unknown): string => (typeof value === "string" ? value : "")
