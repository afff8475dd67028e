/** The examples that the playground ships, asked of the model that it asks by default: each must be answered right. */
import { afterAll, beforeAll, expect, test } from "vitest"
import { type Draft, fromDecision, toDecisions } from "../console/src/playground/draft.ts"
import { type Example, examples } from "../console/src/playground/examples.ts"
import { firstModel } from "../console/src/playground/models.ts"
import { type Client, createClient } from "../src/contract/client.ts"
import { type TestServer, startServer } from "./server.ts"

let server: TestServer
let api: Client
let model = ""

beforeAll(async () => {
  server = await startServer()
  api = createClient(server.url, { authorization: `Bearer ${server.key}` })
  const [organization] = await api.listOrganizations()
  const models = await api.listOrganizationModels({ params: { org_id: organization?.id ?? "" } })
  model = firstModel(models, "decisions")
})
afterAll(async () => void (await server.stop()))

test.each(examples.map((example) => [example.name, example] as const))(
  "%s is answered right",
  async (_, example) => {
    const draft: Draft = { api: "decisions", model, rival: null, ...example.make() }
    const { answers } = await api.createDecision({ body: toDecisions(draft, model) })
    expect(draft.questions.map((_question, index) => said(draft, answers, index))).toEqual(example.right)
  },
)

type Answers = Awaited<ReturnType<Client["createDecision"]>>["answers"]

function said({ questions }: Draft, answers: Answers, index: number): Example["right"][number] {
  const given = answers[index]
  const answer = given ? fromDecision(given) : null
  if (!answer) return "nothing"
  if (answer.type === "predicate") return answer.probability >= 0.5 ? "yes" : "no"
  const likeliest = answer.probabilities.indexOf(Math.max(...answer.probabilities))
  return questions[index]?.options[likeliest]?.value ?? "?"
}
