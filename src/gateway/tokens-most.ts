/** How many tokens a text and its branches can have at most, before any model has read them. */
import { utf8Bytes } from "../contract/decisions.ts"
import { promptText } from "../engine/branch.ts"
import type { ScoreWork } from "../engine/engine.ts"

/** Tokens that the wording of a branch and the template around it take, at most. */
const wordingTokensMax = 512

/** No tokenizer makes more tokens than there are bytes. */
export const tokensMost = ({ evidence, branches }: Pick<ScoreWork, "evidence" | "branches">): number =>
  branches.reduce(
    (sum, branch) => sum + utf8Bytes(promptText(branch)) + wordingTokensMax,
    utf8Bytes(evidence) + wordingTokensMax,
  )
