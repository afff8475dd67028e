/**
 * What is kept of a request: of a chat or a response the conversation as the model read it and what it wrote, of a classification its
 * questions and verdicts; and the same in the spans of a trace, where the operator wants that (`telemetry.content`).
 */
import { elementAt } from "../../base/lists.ts"
import {
  type ContentInput,
  type ContentMessage,
  contentLimits,
  type ContentAnswer,
  type ContentQuestion,
} from "../../contract/content.ts"
import type { ChatMessage, GenerationEvent } from "../../engine/engine.ts"
import {
  type Classification,
  marginsOf,
  type Question,
  type Verdict,
  verdictOf,
} from "../classification/classification.ts"
import type { AskedContent, ContentEnd, ContentLogger } from "./content-logger.ts"

export const conversationInput = (messages: readonly ChatMessage[]): ContentInput => ({
  messages: messages.map(toMessage),
  texts: [],
})

function toMessage({ role, content, reasoning, toolCalls, toolCallId }: ChatMessage): ContentMessage {
  return {
    role,
    content,
    ...(reasoning === undefined ? {} : { reasoning }),
    ...(toolCalls === undefined ? {} : { tool_calls: toolCalls.map((call) => ({ ...call })) }),
    ...(toolCallId === undefined ? {} : { tool_call_id: toolCallId }),
  }
}

/** One answer as it is generated. What is too long to be kept is not gathered to its end. */
export class GatheredAnswer {
  #content = ""
  #reasoning = ""
  #characters = 0
  readonly #calls: { name: string; arguments: string }[] = []

  /** Hands each event on. */
  async *gather(events: AsyncIterable<GenerationEvent>): AsyncGenerator<GenerationEvent> {
    for await (const event of events) {
      this.#add(event)
      yield event
    }
  }

  #add(event: GenerationEvent): void {
    if (event.kind === "end" || this.#characters > contentLimits.recordBytesMax) return
    this.#characters += event.kind === "call" ? event.name.length : event.text.length
    switch (event.kind) {
      case "text":
        this.#content += event.text
        return
      case "reasoning":
        this.#reasoning += event.text
        return
      case "call":
        this.#calls.push({ name: event.name, arguments: "" })
        return
      case "arguments": {
        const call = this.#calls.at(-1)
        if (call) call.arguments += event.text
      }
    }
  }

  message(): ContentMessage {
    return {
      role: "assistant",
      content: this.#content,
      ...(this.#reasoning === "" ? {} : { reasoning: this.#reasoning }),
      // The ids of calls are made for each way of answering; the record tells calls apart by their order.
      ...(this.#calls.length === 0
        ? {}
        : { tool_calls: this.#calls.map((call, at) => ({ id: String(at + 1), ...call })) }),
    }
  }
}

/** What was asked, as it is kept. */
export const askedContent = ({
  evidence,
  questions,
}: Pick<Classification, "evidence" | "questions">): AskedContent => ({
  evidence,
  questions: contentQuestions(questions),
  input: null,
})

const contentQuestions = (questions: readonly Question[]): ContentQuestion[] =>
  questions.map((question) => ({
    name: question.name,
    type: question.type,
    instructions: question.instructions,
    options: optionsOf(question),
  }))

function optionsOf(question: Question): ContentQuestion["options"] {
  switch (question.type) {
    case "predicate":
      return []
    case "choice":
      return question.options.map(({ value, description }) => ({ value, description }))
    case "score":
      return question.levels.map(({ label, description }, level) => ({
        value: level,
        description: description === "" ? label : `${label}: ${description}`,
      }))
  }
}

/** The verdicts of questions that no set asked: the most probable answers. */
export function plainEnd(model: string, questions: readonly Question[], margins: Float64Array): ContentEnd {
  const asked = questions.map((question) => ({ question, threshold: null, below: "answer" as const }))
  const at = questions.map((_, index) => index)
  const own = marginsOf(questions, at, margins)
  const verdicts = asked.map((one, index) => verdictOf(one, elementAt(own, index), false))
  return { model, questionSet: null, answers: contentAnswers(verdicts, asked), review: null, output: null }
}

export const contentAnswers = (
  verdicts: readonly Verdict[],
  questions: readonly { readonly question: Question; readonly threshold: number | null }[],
): ContentAnswer[] =>
  verdicts.map((verdict, at) => ({
    name: questions[at]?.question.name ?? null,
    verdict: verdict.value,
    abstained: verdict.isAbstention,
    confidence: verdict.confidence,
    threshold: questions[at]?.threshold ?? null,
  }))

/** Of one attribute; collectors refuse larger batches. */
const charactersMax = 16_384

/** The same content logger, whose requests also have their content in their spans; not redacted. */
export function traceContent(contentLogger: ContentLogger): ContentLogger {
  return {
    begin(start) {
      const pending = contentLogger.begin(start)
      const { span } = start
      if (!span) return pending
      span.set(attributesOf(askedIn(start.asked())))
      return {
        finish: async (end) => {
          const ended = end()
          // Before anything is awaited: the span ends when usage is recorded.
          span.set(attributesOf(answeredIn(ended)))
          return await pending.finish(() => ended)
        },
      }
    },
  }
}

function askedIn({ evidence, questions, input }: AskedContent): Record<string, unknown> {
  if (input === null) return { "umpire.decision.evidence": evidence, "umpire.decision.asked": questions }
  const { messages, texts } = input
  return messages.length > 0 ? { "gen_ai.input.messages": messages } : { "gen_ai.input.texts": texts }
}

const answeredIn = ({ answers, output }: ContentEnd): Record<string, unknown> => ({
  "umpire.decision.answers": answers.length > 0 ? answers : null,
  "gen_ai.output.messages": output,
})

/** As texts; JSON where they are none. */
function attributesOf(values: Record<string, unknown>): Record<string, string | null> {
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => {
      if (value === null || value === undefined) return [name, null]
      const text = typeof value === "string" ? value : JSON.stringify(value)
      return [name, text.length > charactersMax ? `${text.slice(0, charactersMax)}…` : text]
    }),
  )
}
