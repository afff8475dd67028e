/** Finds the tokens of a vocabulary that spell yes and those that spell no. */

interface AnswerTokens {
  readonly yes: readonly number[]
  readonly no: readonly number[]
}

/** Every token that is one spelling of the word, with or without the space that starts a word in that vocabulary. */
export function findAnswerTokens(
  texts: readonly string[],
  isControlToken: (token: number) => boolean,
): AnswerTokens {
  const yes: number[] = []
  const no: number[] = []
  for (const [token, text] of texts.entries()) {
    const word = spelledWord(text)
    if (word === undefined || isControlToken(token)) continue
    if (word === "yes") yes.push(token)
    else no.push(token)
  }
  if (yes.length === 0 || no.length === 0) {
    throw new Error(
      `Cannot read answers from this model: its vocabulary has ${yes.length} tokens for yes and ${no.length} for no; ` +
        "use a model in which each is one token",
    )
  }
  return { yes, no }
}

// Byte-level vocabularies write a leading space as "Ġ", SentencePiece ones as "▁".
const SPELLING = /^[Ġ▁ ]?(yes|Yes|YES|no|No|NO)$/

function spelledWord(text: string): "yes" | "no" | undefined {
  const word = SPELLING.exec(text)?.[1]?.toLowerCase()
  return word === "yes" || word === "no" ? word : undefined
}
