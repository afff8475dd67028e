import { expect, test } from "vitest"
import type { KeptContent } from "../../../src/contract/content.ts"
import { chatOfContent, draftOfContent } from "./draft-of-content.ts"

const kept = {
  evidence: "The box was crushed.",
  endpoint: "decisions",
  model: "umpire-decide",
  questions: [
    { name: "refund", type: "predicate", instructions: "A refund?", options: [] },
    {
      name: null,
      type: "choice",
      instructions: "About?",
      options: [
        { value: true, description: "" },
        { value: "delivery", description: "the way of the parcel" },
      ],
    },
    {
      name: "mood",
      type: "score",
      instructions: "Mood?",
      options: [{ value: 0, description: "angry: shouts" }],
    },
  ],
  // The rest is not read.
} as unknown as KeptContent

test("evidence and questions come back as they were asked", () => {
  expect(draftOfContent(kept)).toMatchObject({
    api: "decisions",
    model: "umpire-decide",
    evidence: "The box was crushed.",
    questions: [
      { type: "predicate", name: "refund", instructions: "A refund?", options: [] },
      {
        name: "",
        options: [
          { value: "true", boolean: true },
          { value: "delivery", description: "the way of the parcel", boolean: false },
        ],
      },
      { type: "score", options: [{ value: "angry", description: "shouts" }] },
    ],
  })
})

test("without evidence there is nothing to open, and a set is not a model of the playground", () => {
  expect(draftOfContent({ ...kept, evidence: null })).toBeNull()
  expect(draftOfContent({ ...kept, model: "set:triage@2" })?.model).toBe("")
})

test("a conversation is opened before its last words, which are to be sent again", () => {
  const messages = [
    { role: "system", content: "Be brief." },
    { role: "user", content: "Hello" },
    { role: "assistant", content: "Hi" },
    { role: "assistant", content: "", tool_calls: [{ id: "1", name: "look", arguments: "{}" }] },
    { role: "tool", content: "sunny", tool_call_id: "1" },
    { role: "user", content: "And now?" },
  ]
  // The rest is not read.
  const content = { model: "umpire-chat", input: { messages, texts: [] } } as unknown as KeptContent
  expect(chatOfContent(content)).toEqual({
    model: "umpire-chat",
    system: "Be brief.",
    messages: [
      { role: "user", content: "Hello" },
      { role: "assistant", content: "Hi" },
    ],
    text: "And now?",
  })
  expect(chatOfContent({ ...content, input: null })).toBeNull()
  expect(chatOfContent({ ...content, input: { messages: [], texts: ["embedded"] } })).toBeNull()
})
