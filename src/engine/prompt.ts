/** Splits a model's own chat template into what stands before the evidence and what stands after a branch. */
import { Template } from "@huggingface/jinja"

export interface PromptFrame {
  /** From the start of the prompt to the evidence. */
  readonly head: string
  /** From the end of the branch text to the place where the answer starts. */
  readonly tail: string
}

interface TemplateSource {
  readonly template: string | undefined
  readonly bosText: string
  readonly eosText: string
}

/** A model without a template continues plain text; this asks it for the answer. */
const PLAIN_FRAME: PromptFrame = { head: "", tail: "\nAnswer:" }

/** Letters only: no template trims, escapes or splits it. */
export const MARKER = "UmpireEvidenceGoesHere"

/** Null where the prompt does not have the marker once. */
export function splitAtMarker(prompt: string): PromptFrame | null {
  const [head = "", tail, ...more] = prompt.split(MARKER)
  return tail === undefined || more.length > 0 ? null : { head, tail }
}

export function splitTemplate(source: TemplateSource): PromptFrame {
  if (source.template === undefined) return PLAIN_FRAME
  const prompt = render(source.template, source)
  const frame = splitAtMarker(prompt)
  if (frame) return frame
  const times = prompt.split(MARKER).length - 1
  throw new Error(
    `Cannot use the model's chat template: it wrote the user's text ${times} times, expected once`,
  )
}

function render(template: string, source: TemplateSource): string {
  try {
    return new Template(template).render({
      messages: [{ role: "user", content: MARKER }],
      add_generation_prompt: true,
      // Thinking would stand between the question and the answer that is read.
      enable_thinking: false,
      bos_token: source.bosText,
      eos_token: source.eosText,
    })
  } catch (error) {
    throw new Error("Cannot render the model's chat template with one user message", { cause: error })
  }
}

/** Texts that look like special tokens of a chat template; cut in two, neither half is one. */
export const specialLooking = /<[^<>\s]{1,64}>|\[\/?[A-Z_]{2,32}\]/g

/** The same JSON, in which no string holds what a tokenizer could take for a special token. */
export const escapeSpecialTokens = (json: string): string =>
  json.replaceAll(
    specialLooking,
    (text) => `\\u${text.charCodeAt(0).toString(16).padStart(4, "0")}${text.slice(1)}`,
  )
