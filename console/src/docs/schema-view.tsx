/** A schema as a tree of fields; named parts open on demand. */
import { type ReactNode, useState } from "react"
import { type Reference, type Schema, innerSchema, refName, resolve, typeOf } from "./document.ts"
import { t } from "../i18n/translate.ts"

const openDepth = 1

export function SchemaView({
  schema: given,
  schemas,
  depth = 0,
}: {
  schema: Schema
  schemas: Reference["schemas"]
  depth?: number
}): ReactNode {
  const schema = resolve(given, schemas)
  const choices = schema.anyOf ?? schema.oneOf
  if (choices)
    return (
      <div className="flex flex-col gap-1">
        <p className="text-soft text-xs">{t("One of")}</p>
        {choices.map((choice, index) => (
          <Nested
            key={index}
            title={refName(choice) ?? typeOf(choice)}
            schema={choice}
            schemas={schemas}
            depth={depth + 1}
          />
        ))}
      </div>
    )
  if (schema.type === "array" && schema.items)
    return <SchemaView schema={schema.items} schemas={schemas} depth={depth} />
  if (!schema.properties) return <p className="text-soft font-mono text-xs">{typeOf(schema)}</p>
  return (
    <dl className="border-line flex flex-col gap-1.5 border-s ps-3">
      {Object.entries(schema.properties).map(([name, field]) => (
        <Field
          key={name}
          name={name}
          field={field}
          required={schema.required?.includes(name) ?? false}
          schemas={schemas}
          depth={depth}
        />
      ))}
    </dl>
  )
}

function Field({
  name,
  field,
  required,
  schemas,
  depth,
}: {
  name: string
  field: Schema
  required: boolean
  schemas: Reference["schemas"]
  depth: number
}): ReactNode {
  const inner = innerSchema(field, schemas)
  const about = field.description ?? resolve(field, schemas).description
  return (
    <div className="text-xs">
      <dt className="inline font-mono font-medium">
        {name}
        {required ? (
          <span className="text-bad" title={t("required")}>
            {" "}
            *
          </span>
        ) : null}
      </dt>{" "}
      <dd className="text-soft inline">
        <span className="font-mono">{typeOf(field)}</span>
        {limits(field)}
        {about ? <span>: {about}</span> : null}
        {inner ? <Nested title={t("fields")} schema={inner} schemas={schemas} depth={depth + 1} /> : null}
      </dd>
    </div>
  )
}

function Nested({
  title,
  schema,
  schemas,
  depth,
}: {
  title: string
  schema: Schema
  schemas: Reference["schemas"]
  depth: number
}): ReactNode {
  const [open, setOpen] = useState(depth < openDepth)
  return (
    <details open={open} onToggle={(event) => setOpen(event.currentTarget.open)} className="mt-1">
      <summary className="text-accent text-xs">{title}</summary>
      {open ? (
        <div className="mt-1 ms-1">
          <SchemaView schema={schema} schemas={schemas} depth={depth} />
        </div>
      ) : null}
    </details>
  )
}

function limits({ minimum, maximum, minLength, maxLength, minItems, maxItems }: Schema): string {
  const huge = Number.MAX_SAFE_INTEGER
  const parts = [
    minimum !== undefined && minimum > -huge ? t("from {minimum}", { minimum }) : "",
    maximum !== undefined && maximum < huge ? t("to {maximum}", { maximum }) : "",
    minLength && minLength > 1 ? t("at least {minLength} characters", { minLength }) : "",
    maxLength !== undefined ? t("at most {maxLength} characters", { maxLength }) : "",
    minItems ? t("at least {minItems}", { minItems }) : "",
    maxItems !== undefined ? t("at most {maxItems}", { maxItems }) : "",
  ].filter(Boolean)
  return parts.length === 0 ? "" : ` (${parts.join(", ")})`
}
