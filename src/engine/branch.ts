/** A branch: one binary read about the evidence, as data; each kind of model has a wording of its own for it. */

export type Branch =
  | {
      readonly kind: "predicate"
      readonly question: string
      /** What yes and no mean; empty when not said. */
      readonly yesMeans: string
      readonly noMeans: string
      /** Stands for the option no of a choice: the opposite of its margin counts. */
      readonly negated?: true
      /** How many options of the choice mean this, and so share its probability; one where it is not said. */
      readonly sharers?: number
    }
  | {
      readonly kind: "choice"
      readonly question: string
      /** The option that is proposed; an empty description is none. */
      readonly value: string
      readonly description: string
      /** How many branches its question has, where they stand together. */
      readonly options?: number
      readonly sharers?: number
    }
  | {
      readonly kind: "score"
      readonly question: string
      /** The level that is proposed, which of how many it is from zero; an empty description is none. */
      readonly label: string
      readonly description: string
      readonly level: number
      readonly levels: number
    }

export const predicate = (question: string): Branch => ({
  kind: "predicate",
  question,
  yesMeans: "",
  noMeans: "",
})

/** Of a document. The query is the caller's and stands in the question; the document is evidence, whose instructions are not followed. */
export const relevanceBranch = (query: string): Branch =>
  predicate(`Does the text help to answer this query: ${query}`)

/** The wording for language models, which answer with the next token; test/fixtures/prompt-texts.json has examples. */
export function promptText(branch: Branch): string {
  const stem = `\n\nQuestion: ${branch.question}`
  switch (branch.kind) {
    case "predicate": {
      const yes = branch.yesMeans === "" ? "" : `\nYes means: ${branch.yesMeans}`
      const no = branch.noMeans === "" ? "" : `\nNo means: ${branch.noMeans}`
      return `${stem}${yes}${no}\nAnswer yes or no.`
    }
    case "choice":
      return (
        `${stem}\nProposed answer: ${described(branch.value, branch.description)}` +
        "\nIs the proposed answer correct? Answer yes or no."
      )
    case "score":
      return (
        `${stem}\nProposed rating: ${described(branch.label, branch.description)} ` +
        `(level ${branch.level} of 0..${branch.levels - 1})` +
        "\nIs the proposed rating correct? Answer yes or no."
      )
  }
}

const described = (text: string, description: string): string =>
  description === "" ? text : `${text} - ${description}`
