/** `umpire label --dry-run`: how many rows, tokens and dollars it would be, without asking anything. */
import type { DecisionQuestion } from "../contract/decisions.ts"
import { type CliContext, show } from "./command.ts"
import type { LabelAsker, OpenLocal } from "./label-asker.ts"
import { counted, plural } from "../base/plural.ts"
import { usd } from "./label-progress.ts"
import type { LabelTable, RowCounts } from "./label-table.ts"

interface PreviewDeps {
  readonly asker: LabelAsker
  readonly table: LabelTable
  readonly openLocal: OpenLocal
}

/** Where the model is not on this machine, a token is taken for as many bytes as in English text. */
const bytesPerToken = 4

interface Counter {
  readonly isExact: boolean
  count(text: string): Promise<number>
  close(): Promise<void>
}

export async function previewCost(
  context: CliContext,
  { asker, table, openLocal }: PreviewDeps,
  { rows, blank, distinct, pending }: RowCounts,
): Promise<number> {
  const counter = await openCounter(context, asker, openLocal)
  let tokens = 0
  try {
    for await (const { text } of table.pendingTexts()) tokens += await counter.count(text)
  } finally {
    await counter.close()
  }
  const { priceUsd } = asker
  const price_usd = priceUsd === null ? null : (tokens / 1e6) * priceUsd
  const found = { rows, blank, distinct, pending, tokens, tokens_exact: counter.isExact, price_usd }
  return show(context, found, () => {
    const about = counter.isExact ? "" : "about "
    return [
      `rows    ${counted(rows)}${blank > 0 ? `, ${counted(blank)} without a text` : ""}`,
      `asked   ${counted(pending)} of ${plural(distinct, "different text")}${pending < distinct ? "; the others are answered" : ""}`,
      `tokens  ${about}${counted(tokens)}`,
      `price   ${price_usd === null ? "unknown: the key may not see prices" : about + usd(price_usd)}`,
      "",
    ].join("\n")
  })
}

async function openCounter(context: CliContext, asker: LabelAsker, openLocal: OpenLocal): Promise<Counter> {
  const { model, questions } = asker
  const asked = questions.map(({ question }) => question)
  try {
    const local = await openLocal(context, model)
    return {
      isExact: true,
      count: async (input) => await local.countTokens({ model, input, questions: asked }),
      close: async () => await local.close(),
    }
  } catch {
    const asides = asked.reduce((sum, question) => sum + textBytes(question), 0)
    return {
      isExact: false,
      count: async (input) => Math.ceil((Buffer.byteLength(input) + asides) / bytesPerToken),
      close: async () => undefined,
    }
  }
}

/** Every branch repeats its question. */
function textBytes(question: DecisionQuestion): number {
  const own = Buffer.byteLength(question.instructions)
  switch (question.type) {
    case "predicate":
      return own
    case "choice":
      return question.choices.reduce(
        (sum, { value, description }) =>
          sum + own + Buffer.byteLength(`${String(value)}${description ?? ""}`),
        0,
      )
    case "score":
      return question.levels.reduce(
        (sum, { label, description }) => sum + own + Buffer.byteLength(`${label}${description ?? ""}`),
        0,
      )
  }
}
