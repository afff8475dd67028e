/** An editor for one CEL expression, which says what is wrong while one types. */
import { type ReactNode, useEffect, useState } from "react"
import { AreaField } from "../parts/field.tsx"
import { t } from "../i18n/translate.ts"

/** Long enough not to complain about every half-typed word. */
const quietMs = 300

export function CelField({
  label,
  name,
  value,
  placeholder,
  refused,
  onChange,
}: {
  label: string
  /** The path of the field in the request, under which the server reports about it. */
  name: string
  value: string
  placeholder: string
  refused: ReadonlyMap<string, string>
  onChange: (value: string) => void
}): ReactNode {
  const found = useCelError(value)
  const [sent, setSent] = useState({ value, refused })
  if (sent.refused !== refused) setSent({ value, refused })
  const fromServer = sent.value === value ? refused.get(name) : undefined
  return (
    <AreaField
      label={label}
      rows={1}
      className="field-sizing-content min-h-9 font-mono text-xs"
      placeholder={placeholder}
      value={value}
      error={found ?? fromServer ?? null}
      // Sent as it is, it may be taken once something else is confirmed.
      data-refused={found === null && fromServer !== undefined ? true : undefined}
      onChange={(event) => onChange(event.target.value)}
    />
  )
}

/** The parser is loaded when an expression is first typed. */
function useCelError(expression: string): string | null {
  const [error, setError] = useState<string | null>(null)
  useEffect(() => {
    let current = true
    const timer = setTimeout(() => {
      if (expression.trim() === "") return setError(null)
      void import("@bufbuild/cel").then(({ parse }) => {
        if (current) setError(parseError(expression, parse))
      })
    }, quietMs)
    return () => {
      current = false
      clearTimeout(timer)
    }
  }, [expression])
  return error
}

function parseError(expression: string, parse: (expression: string) => unknown): string | null {
  try {
    parse(expression)
    return null
  } catch (error) {
    return error instanceof Error ? t("Not CEL: {message}", { message: error.message }) : t("Not CEL.")
  }
}
