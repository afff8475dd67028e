/** What a key press means where answers are labelled one by one. */
import type { ReviewItem } from "../../../src/contract/question-sets/review.ts"
import type { LabelValue } from "./labels.ts"

export type ReviewAction =
  | { readonly kind: "label"; readonly label: LabelValue }
  | { readonly kind: "not_sure" | "skip" | "undo" }

/** What the keys of a question follow from. */
export type KeyedItem = Pick<ReviewItem, "kind" | "options">

/** Further options have no key of their own. */
const digitsMax = 9

/** The key that gives this label: y and n, or the place of the option. */
export function keyOfOption({ kind, options }: KeyedItem, index: number): string {
  if (kind === "predicate") return options[index]?.value === "yes" ? "y" : "n"
  return index < digitsMax ? String(index + 1) : ""
}

/** Null: the key means nothing here. */
export function actionOfKey(key: string, item: KeyedItem | undefined): ReviewAction | null {
  if (key === "u") return { kind: "undo" }
  if (!item) return null
  if (key === "s") return { kind: "skip" }
  if (key === "?") return { kind: "not_sure" }
  const chosen = item.options.find((_, index) => key !== "" && keyOfOption(item, index) === key)
  return chosen ? { kind: "label", label: chosen.value } : null
}
