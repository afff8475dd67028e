/** A field for a number or an amount of money: says beside it what it understood, or what is wrong, which stops its form. */
import type { ComponentProps, ReactNode } from "react"
import { TextField } from "./field.tsx"
import { type NumberBounds, type NumberKind, numberKinds, numberText, readNumber } from "./typed-number.ts"

export function NumberField({
  kind,
  bounds,
  hint,
  onText,
  ...rest
}: Omit<ComponentProps<typeof TextField>, "onChange" | "error" | "inputMode"> & {
  readonly value: string
  readonly kind: NumberKind
  readonly bounds?: NumberBounds
  readonly onText: (text: string) => void
}): ReactNode {
  const { value, problem } = readNumber(rest.value, kind, bounds)
  // What is written as it is understood needs no words.
  const isPlain = rest.value.trim() === numberText(value, kind)
  const understood =
    kind === "amount" && value !== null && !isPlain ? `= ${numberKinds.amount.words(value)}` : null
  return (
    <TextField
      {...rest}
      inputMode={kind === "whole" ? "numeric" : "decimal"}
      error={rest.disabled ? null : problem}
      hint={
        understood && hint ? (
          <>
            <span className="number">{understood}</span> · {hint}
          </>
        ) : (
          (understood ?? hint)
        )
      }
      onChange={(event) => onText(event.target.value)}
    />
  )
}
