/** The examples that the playground ships, asked of the model that it asks by default in each language: each must be answered right. */
import { afterAll, beforeAll, expect, test } from "vitest"
import { type Draft, fromDecision, toDecisions } from "../console/src/playground/draft.ts"
import { exampleDraft, examples } from "../console/src/playground/examples.ts"
import { type Catalog, setLanguage, t } from "../console/src/i18n/translate.ts"
import { type Client, createClient } from "../src/contract/client.ts"
import type { OrgModel } from "../src/contract/platform/models.ts"
import { readCatalogs } from "../scripts/messages.ts"
import { type TestServer, startServer } from "./server.ts"

let server: TestServer
let api: Client
let models: readonly OrgModel[] = []

beforeAll(async () => {
  server = await startServer()
  api = createClient(server.url, { authorization: `Bearer ${server.key}` })
  const [organization] = await api.listOrganizations()
  models = await api.listOrganizationModels({ params: { org_id: organization?.id ?? "" } })
})
afterAll(async () => {
  setLanguage("en", {})
  await server.stop()
})

const written: readonly (readonly [language: string, Catalog])[] = [
  ["en", {}],
  // A test of theirs sees to their form.
  ...Object.entries(readCatalogs() as Readonly<Record<string, Catalog>>),
]
const asked = written.flatMap(([language, catalog]) =>
  examples.map((example) => ({ language, name: example.name, example, catalog })),
)

test.each(asked)("in $language, $name is answered right", async ({ language, example, catalog }) => {
  setLanguage(language, catalog)
  const draft: Draft = { api: "decisions", rival: null, ...exampleDraft(example, models) }
  expect(draft.evidence === example.make((text) => text).evidence).toBe(language === "en")
  const { answers } = await api.createDecision({ body: toDecisions(draft, draft.model) })
  expect(draft.questions.map((_question, index) => said(draft, answers, index))).toEqual(example.right(t))
})

test("where no model has learnt the language of the page, an example is in English", () => {
  const [example] = examples
  const [language, catalog] = written.at(-1) ?? []
  if (!example || !language || !catalog) throw new Error("There is nothing to write")
  setLanguage(language, catalog)
  const english = models.filter(({ model_sku }) => model_sku === "umpire-decide")
  const draft = exampleDraft(example, english)
  expect(draft).toMatchObject({ model: "umpire-decide", evidence: example.make((text) => text).evidence })
})

type Answers = Awaited<ReturnType<Client["createDecision"]>>["answers"]

function said({ questions }: Draft, answers: Answers, index: number): string {
  const given = answers[index]
  const answer = given ? fromDecision(given) : null
  if (!answer) return "nothing"
  if (answer.type === "predicate") return answer.probability >= 0.5 ? "yes" : "no"
  const likeliest = answer.probabilities.indexOf(Math.max(...answer.probabilities))
  return questions[index]?.options[likeliest]?.value ?? "?"
}
