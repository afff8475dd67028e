/** What a key press means on the Review tab. */
import type { ReviewItem } from "../../../src/contract/question-sets/review.ts"
import type { LabelValue } from "./labels.ts"

export type ReviewAction =
  | { readonly kind: "label"; readonly label: LabelValue }
  | { readonly kind: "not_sure" | "skip" | "undo" }

/** Further options have no key of their own. */
const digitsMax = 9

/** The key that gives this label: y and n, or the place of the option. */
export function keyOfOption({ kind, options }: Pick<ReviewItem, "kind" | "options">, index: number): string {
  if (kind === "predicate") return options[index]?.value === "yes" ? "y" : "n"
  return index < digitsMax ? String(index + 1) : ""
}

/** Null: the key means nothing here. */
export function actionOfKey(
  key: string,
  item: Pick<ReviewItem, "kind" | "options"> | undefined,
): ReviewAction | null {
  if (key === "u") return { kind: "undo" }
  if (!item) return null
  if (key === "s") return { kind: "skip" }
  if (key === "?") return { kind: "not_sure" }
  const chosen = item.options.find((_, index) => key !== "" && keyOfOption(item, index) === key)
  return chosen ? { kind: "label", label: chosen.value } : null
}
