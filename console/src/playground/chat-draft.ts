/** A conversation of the chat: kept while its tab is open, or opened from the kept content of a request, by a link of this browser. */
import type { BrowserStorage } from "../parts/storage.ts"
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
  return readChat(await unpackJson(packed))
}

const chatEntry = "chat"

export const keepChat = (storage: BrowserStorage, draft: ChatDraft): void => storage.write(chatEntry, draft)
export const keptChat = (storage: BrowserStorage): ChatDraft =>
  readChat(storage.read(chatEntry)) ?? { model: "", system: "", messages: [], text: "" }

function readChat(given: unknown): ChatDraft | null {
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
