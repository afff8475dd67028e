/** Answers POST /v1/moderations: a built-in list of questions, one for each of OpenAI's categories. */
import type { Handler } from "../../contract/endpoint.ts"
import type { createModeration } from "../../contract/openai/endpoints.ts"
import {
  type Moderation,
  type ModerationCategory,
  type ModerationRequest,
  moderationCategories,
} from "../../contract/openai/moderations.ts"
import { predicate } from "../../engine/branch.ts"
import { readPredicate } from "../../scoring/answers.ts"
import { detectLanguage } from "../language.ts"
import { type InferenceDeps, inputContent, outputContent, runInference, serve } from "./inference.ts"
import { decisionModels, scoreEach } from "./rerank.ts"

interface ModerationQuestion {
  readonly question: string
  readonly threshold: number
}

/** At each threshold about one in a hundred harmless texts is found by the question: bench/safety.ts finds those of another model. */
const ask = (question: string, threshold = 0.5): ModerationQuestion => ({ question, threshold })

export const moderationQuestions: Readonly<Record<ModerationCategory, ModerationQuestion>> = {
  harassment: ask("Does the text insult, bully or harass a person?", 0.89),
  "harassment/threatening": ask("Does the text threaten a person with violence or serious harm?", 0.8),
  hate: ask(
    "Does the text express hatred of people because of their race, religion, nationality, gender, sexual orientation or disability?",
    0.68,
  ),
  "hate/threatening": ask(
    "Does the text threaten people with violence because of their race, religion, nationality, gender, sexual orientation or disability?",
    0.69,
  ),
  illicit: ask("Does the text ask for or give instructions for a crime?", 0.87),
  "illicit/violent": ask("Does the text ask for or give instructions for violence or making a weapon?", 0.71),
  "self-harm": ask("Is the text about suicide, cutting oneself or another way of harming oneself?", 0.87),
  "self-harm/intent": ask("Does the speaker say that they want to harm or kill themselves?"),
  "self-harm/instructions": ask("Does the text ask for or give instructions for suicide or self-harm?", 0.78),
  sexual: ask("Is the text meant to arouse sexually, or does it describe sexual acts?", 0.79),
  "sexual/minors": ask("Is the text sexual content about someone under 18?", 0.68),
  violence: ask("Does the text describe or encourage killing or physical injury?", 0.59),
  "violence/graphic": ask("Does the text describe death, injury or blood in graphic detail?", 0.88),
}

const branches = moderationCategories.map((category) => predicate(moderationQuestions[category].question))

/** Clients name OpenAI's models without being told to. */
const openaiModels = /^(?:omni|text)-moderation(?:-|$)/

export function moderationHandler(deps: InferenceDeps): Handler<typeof createModeration> {
  const start = { callSource: "moderations", wire: "moderations" } as const
  return async (asker) =>
    await runInference(deps, { ...start, asker }, async (metered, body) => {
      const sku = body.model ?? null
      const named = sku === null || openaiModels.test(sku) ? deps.catalog.fallback.sku : sku
      const texts = textsOf(body.input)
      const [about = ""] = texts
      const language = metered.inLanguage(await detectLanguage(about))
      const resolved = await decisionModels(deps, metered, { name: named, about, language })
      metered.sequence.describe({ questions: texts.length * branches.length })
      metered.keep(() => inputContent({ messages: [], texts: [...texts] }))
      const work = texts.map((evidence) => ({ evidence, branches }))
      const { model, margins, usage } = await serve(metered, resolved, async (turn) => ({
        model: turn.model,
        ...(await scoreEach(deps, metered, { model: turn.model, texts: work })),
      }))
      await metered.succeed(usage, () => outputContent(model.sku))
      const inputTokens = usage.inputTokens + usage.cachedInputTokens
      return {
        id: deps.ids.next("modr"),
        model: model.sku,
        results: margins.map(resultOf),
        usage: { prompt_tokens: inputTokens, total_tokens: inputTokens + usage.outputTokens },
      }
    })
}

function textsOf(input: ModerationRequest["input"]): readonly string[] {
  if (typeof input === "string") return [input]
  const texts = input.map((one) => (typeof one === "string" ? one : "text" in one ? String(one.text) : ""))
  // Parts are of one text.
  return typeof input[0] === "string" ? texts : [texts.join("\n\n")]
}

function resultOf(margins: Float64Array): Moderation["results"][number] {
  const scores = moderationCategories.map((_, at) => readPredicate(margins[at] ?? Number.NaN))
  const applies = moderationCategories.map(
    (category, at) => (scores[at] ?? 0) >= moderationQuestions[category].threshold,
  )
  return {
    flagged: applies.includes(true),
    categories: byCategory((at) => applies[at] ?? false),
    category_scores: byCategory((at) => scores[at] ?? 0),
    category_applied_input_types: byCategory(() => ["text" as const]),
  }
}

const byCategory = <Value>(value: (at: number) => Value): Record<ModerationCategory, Value> =>
  // Every category is there.
  Object.fromEntries(moderationCategories.map((category, at) => [category, value(at)])) as Record<
    ModerationCategory,
    Value
  >
