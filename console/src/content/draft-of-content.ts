/** Kept content as a draft of the playground, or as a conversation of the chat. */
import type { KeptContent } from "../../../src/contract/content.ts"
import type { ChatDraft } from "../playground/chat-draft.ts"
import { type Draft, rowId } from "../playground/draft.ts"

/** Null where the evidence or the questions were not kept. */
export function draftOfContent({ evidence, questions, endpoint, model }: KeptContent): Draft | null {
  if (evidence === null || questions.length === 0) return null
  return {
    api: endpoint === "systemone" ? "systemone" : "decisions",
    model: model.startsWith("set:") ? "" : model,
    rival: null,
    evidence,
    questions: questions.map(({ type, name, instructions, options }) => ({
      id: rowId(),
      type,
      name: name ?? "",
      instructions,
      options: options.map(({ value, description }) => ({
        id: rowId(),
        ...(type === "score" ? levelOf(description) : { value: String(value), description }),
        boolean: typeof value === "boolean",
      })),
    })),
  }
}

/** Null where no conversation was kept, or it has no words of a user. Calls of tools are not shown in the chat. */
export function chatOfContent({ input, model }: KeptContent): ChatDraft | null {
  const said = (input?.messages ?? []).filter(({ content }) => content !== "")
  const last = said.findLastIndex(({ role }) => role === "user")
  if (last < 0) return null
  return {
    model,
    system: said.flatMap(({ role, content }) => (role === "system" ? [content] : [])).join("\n\n"),
    messages: said
      .slice(0, last)
      .flatMap(({ role, content }) => (role === "user" || role === "assistant" ? [{ role, content }] : [])),
    text: said[last]?.content ?? "",
  }
}

/** A level is kept as its label, or as label and description with a colon between. */
function levelOf(text: string): { value: string; description: string } {
  const [label = "", ...description] = text.split(": ")
  return { value: label, description: description.join(": ") }
}
