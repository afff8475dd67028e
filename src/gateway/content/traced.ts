/** Puts what is asked and answered into the spans of a trace, where the operator wants that (`telemetry.content`). */
import type { AskedContent, ContentEnd, ContentKeeper } from "./keeper.ts"

/** Of one attribute; collectors refuse larger batches. */
const charactersMax = 16_384

/** The same keeper, whose requests also have their content in their spans; not redacted. */
export function traceContent(keeper: ContentKeeper): ContentKeeper {
  return {
    begin(start) {
      const pending = keeper.begin(start)
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
