import { expect, test } from "vitest"
import type { OrgModel } from "../../../src/contract/platform/models.ts"
import { modelForTexts } from "./models.ts"

/** Of a model, what is read here. */
const model = (model_sku: string, languages: readonly string[], rest: Partial<OrgModel> = {}): OrgModel =>
  ({
    model_sku,
    model_kind: "generation",
    status: "active",
    tools_supported: false,
    about: languages.length === 0 ? null : { languages },
    ...rest,
  }) as OrgModel

const english = ["I have called twice and nobody rang back.", "I am furious and want my money back."]
const german = ["Ich habe zweimal angerufen und niemand rief zurück.", "Ich möchte mein Geld zurück."]
const first = model("first", ["en"])
const two = model("two", ["en", "de"])
const many = model("many", ["en", "de", "fr"])

test.each([
  ["English texts keep the first model", [first, many], english, "first"],
  ["other texts get the model of most languages", [first, two, many], german, "many"],
  ["none has learnt more", [first, model("added", [])], german, "first"],
  ["it may not be used now", [first, two, { ...many, status: "disabled" as const }], german, "two"],
  ["it cannot decide", [first, { ...many, model_kind: "embedding" as const }], german, "first"],
])("the model for texts: %s", (_, models, texts, chosen) => {
  expect(modelForTexts(models, texts)).toBe(chosen)
})
