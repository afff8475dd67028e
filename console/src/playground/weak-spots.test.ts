import { expect, test } from "vitest"
import { examples } from "./examples.ts"
import { weakSpotSentence, weakSpots } from "./weak-spots.ts"

const english = "I have called twice and nobody rang back. I am furious and want my money back."

test.each([
  ["Is the customer not satisfied?", english, 50, ["a question that turns on a “not”"]],
  ["Doesn’t the customer want a refund?", english, 50, ["a question that turns on a “not”"]],
  ["How many people complain?", english, 50, ["counting"]],
  ["Are there at least three invoices?", english, 50, ["counting"]],
  ["Is the total above 100 dollars?", english, 50, ["arithmetic and dates"]],
  ["Did it arrive three days after the order?", english, 50, ["arithmetic and dates"]],
  ["Was it sent before March?", english, 50, ["arithmetic and dates"]],
  [
    "Is it a complaint?",
    "Ich habe zweimal angerufen und niemand hat zurückgerufen, ich möchte mein Geld zurück.",
    50,
    ["texts in another language than English"],
  ],
  [
    "Is it a complaint?",
    "我打了两次电话,没有人回电,我要退款",
    50,
    ["texts in another language than English"],
  ],
  ["Is it a complaint?", english, 3001, ["texts as long as this one"]],
  ["Is it a complaint?", english, 3000, []],
  ["Does the note say so?", "Grüße", 5, []],
])("%j about %j", (question, text, tokens, spots) => {
  expect(weakSpots([question], text, tokens)).toEqual(spots)
})

test("the examples of the playground are none of it", () => {
  for (const { make, name } of examples) {
    const { evidence, questions } = make((text) => text)
    const asked = questions.map(({ instructions }) => instructions)
    expect([name, weakSpots(asked, evidence, 60)]).toEqual([name, []])
  }
})

test("one calm sentence names all of them", () => {
  expect(weakSpotSentence("umpire-decide", [])).toBeNull()
  expect(weakSpotSentence("umpire-decide", ["counting", "arithmetic and dates"])).toBe(
    "umpire-decide is less often right at counting and arithmetic and dates. Check it on rows whose answers you know, or teach it.",
  )
})
