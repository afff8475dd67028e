/** The server asks the default model in the words it was trained on: both sides are tested against one fixture. */
import { promptText } from "../src/engine/branch.ts"
import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { describe, expect, it } from "vitest"
import { z } from "zod"
import { readGguf } from "../src/engine/llama/gguf.ts"
import { splitTemplate } from "../src/engine/llama/prompt.ts"
import { decodeDecisions } from "../src/gateway/classification/wire.ts"
import { decodeSystemOne } from "../src/gateway/classification/systemone.ts"

const Fixture = z.object({
  prefix: z.object({ evidence: z.string(), text: z.string() }),
  tail: z.string(),
  cases: z
    .array(
      z.object({
        name: z.string(),
        endpoint: z.enum(["decisions", "systemone"]),
        question: z.unknown(),
        branches: z.array(z.string()).min(1),
      }),
    )
    .min(10),
})
type PromptCase = z.infer<typeof Fixture>["cases"][number]

const modelFolder = fileURLToPath(new URL("../model/", import.meta.url))
const fixture = Fixture.parse(JSON.parse(readFileSync(`${modelFolder}recipe/prompts.json`, "utf8")))

describe("a branch reads as in training", () => {
  it.each(fixture.cases)("$name", (promptCase) => {
    expect(branchesOf(promptCase)).toEqual(promptCase.branches)
  })
})

it("the default model's template puts the training head before the evidence and the training tail after a branch", async () => {
  const { chatTemplate } = await readGguf(`${modelFolder}smollm2-135m-instruct.gguf`)
  const { head, tail } = splitTemplate({ template: chatTemplate, bosText: "", eosText: "" })
  expect(head + fixture.prefix.evidence).toBe(fixture.prefix.text)
  expect(tail).toBe(fixture.tail)
})

function branchesOf({ endpoint, question }: PromptCase): readonly string[] {
  switch (endpoint) {
    case "decisions":
      return decodeDecisions(bytes({ model: "m", input: "evidence", questions: [question] })).branches.map(
        promptText,
      )
    case "systemone":
      return decodeSystemOne(bytes({ model: "m", state: "evidence", questions: { id: question } }), {
        nullDescriptions: false,
      }).branches.map(promptText)
  }
}

const bytes = (body: unknown): Uint8Array => new TextEncoder().encode(JSON.stringify(body))
