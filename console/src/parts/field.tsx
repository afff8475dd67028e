/** Form fields: a label, the control, a hint, and what is wrong with it, tied together for screen readers. */
import { type ComponentProps, type ReactNode, useId } from "react"

interface FieldProps {
  readonly label: string
  readonly hint?: ReactNode
  readonly error?: string | null | undefined
}

export function TextField({ label, hint, error, ...rest }: FieldProps & ComponentProps<"input">): ReactNode {
  const id = useId()
  return (
    <Labelled id={id} label={label} hint={hint} error={error}>
      <input
        {...rest}
        id={id}
        {...describedBy(id, hint, error)}
        className={`control ${rest.className ?? ""}`}
      />
    </Labelled>
  )
}

export function AreaField({
  label,
  hint,
  error,
  ...rest
}: FieldProps & ComponentProps<"textarea">): ReactNode {
  const id = useId()
  return (
    <Labelled id={id} label={label} hint={hint} error={error}>
      <textarea
        spellCheck={false}
        {...rest}
        id={id}
        {...describedBy(id, hint, error)}
        className={`control ${rest.className ?? ""}`}
      />
    </Labelled>
  )
}

interface Option {
  readonly value: string
  readonly label: string
  readonly disabled?: boolean
}

export function SelectField({
  label,
  hint,
  error,
  options,
  ...rest
}: FieldProps & ComponentProps<"select"> & { readonly options: readonly Option[] }): ReactNode {
  const id = useId()
  return (
    <Labelled id={id} label={label} hint={hint} error={error}>
      <select
        {...rest}
        id={id}
        {...describedBy(id, hint, error)}
        className={`control ${rest.className ?? ""}`}
      >
        {options.map((option) => (
          <option key={option.value} value={option.value} disabled={option.disabled}>
            {option.label}
          </option>
        ))}
      </select>
    </Labelled>
  )
}

export function CheckField({
  label,
  hint,
  ...rest
}: { label: string; hint?: ReactNode } & ComponentProps<"input">): ReactNode {
  const id = useId()
  return (
    <div className="flex items-start gap-2.5">
      <input
        {...rest}
        {...describedBy(id, hint, null)}
        type="checkbox"
        id={id}
        className="accent-accent mt-0.5 size-4 shrink-0"
      />
      <div className="min-w-0 wrap-anywhere">
        <label htmlFor={id} className="text-sm">
          {label}
        </label>
        {hint ? (
          <p id={`${id}-hint`} className="text-soft text-xs">
            {hint}
          </p>
        ) : null}
      </div>
    </div>
  )
}

function Labelled({
  id,
  label,
  hint,
  error,
  children,
}: FieldProps & { id: string; children: ReactNode }): ReactNode {
  return (
    <div className="flex min-w-0 flex-col gap-1">
      <label htmlFor={id} className="label">
        {label}
      </label>
      {children}
      {error ? (
        <p id={`${id}-error`} className="text-bad text-xs" role="alert">
          {error}
        </p>
      ) : hint ? (
        <p id={`${id}-hint`} className="text-soft text-xs">
          {hint}
        </p>
      ) : null}
    </div>
  )
}

function describedBy(id: string, hint: ReactNode, error: string | null | undefined) {
  return {
    "aria-invalid": error ? (true as const) : undefined,
    "aria-describedby": error ? `${id}-error` : hint ? `${id}-hint` : undefined,
  }
}

/** A few exclusive choices side by side, as radio buttons that look like one control. */
export function Segments<Value extends string>({
  label,
  value,
  options,
  onChange,
}: {
  label: string
  value: Value
  options: readonly { readonly value: Value; readonly label: string }[]
  onChange: (value: Value) => void
}): ReactNode {
  const name = useId()
  return (
    <fieldset className="bg-sunken border-line inline-flex max-w-full flex-wrap self-start rounded-lg border p-0.5">
      <legend className="sr-only">{label}</legend>
      {options.map((option) => (
        <label
          key={option.value}
          className={`has-focus-visible:outline-accent relative cursor-pointer rounded-md px-2.5 py-1 text-xs font-medium whitespace-nowrap has-focus-visible:outline-2 ${
            option.value === value
              ? "bg-panel dark:bg-strong/70 text-ink shadow-sm"
              : "text-soft hover:text-ink"
          }`}
        >
          <input
            type="radio"
            name={name}
            value={option.value}
            checked={option.value === value}
            onChange={() => onChange(option.value)}
            className="absolute inset-0 cursor-pointer appearance-none outline-none"
          />
          {option.label}
        </label>
      ))}
    </fieldset>
  )
}
