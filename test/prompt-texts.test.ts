/** What a language model is asked, to the letter: answers that users have measured depend on the wording. */
import { promptText } from "../src/engine/branch.ts"
import { readFileSync } from "node:fs"
import { describe, expect, it } from "vitest"
import { z } from "zod"
import { decodeDecisions, decodeSystemOne } from "../src/gateway/classification/wire.ts"

const Fixture = z.object({
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

const file = new URL("fixtures/prompt-texts.json", import.meta.url)
const { cases } = Fixture.parse(JSON.parse(readFileSync(file, "utf8")))

describe("a language model is asked", () => {
  it.each(cases)("$name", (promptCase) => {
    expect(branchesOf(promptCase)).toEqual(promptCase.branches)
  })
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
