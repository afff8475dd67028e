/** One endpoint: what it takes, what it answers, and a way to try it. */
import { type ReactNode, useEffect, useState } from "react"
import { Button } from "../parts/button.tsx"
import { Badge } from "../parts/page.tsx"
import type { Operation, Parameter, Reference } from "./document.ts"
import { typeOf } from "./document.ts"
import { SchemaView } from "./schema-view.tsx"
import { type Known, notFromHere } from "./examples.ts"
import { TryIt } from "./try-it.tsx"
import { T } from "../i18n/sentence.tsx"
import { t } from "../i18n/translate.ts"

export const methodColors: Record<string, string> = {
  GET: "text-info",
  POST: "text-accent",
  PUT: "text-warn",
  PATCH: "text-warn",
  DELETE: "text-bad",
}

export function OperationView({
  operation,
  schemas,
  known,
}: {
  operation: Operation
  schemas: Reference["schemas"]
  known: Known | undefined
}): ReactNode {
  const [open, setOpen] = useState(() => location.hash === `#${operation.id}`)
  useEffect(() => {
    const look = (): void => {
      if (location.hash === `#${operation.id}`) setOpen(true)
    }
    addEventListener("hashchange", look)
    return () => removeEventListener("hashchange", look)
  }, [operation.id])
  return (
    <article id={operation.id} className="panel scroll-mt-16" aria-label={operation.summary}>
      <h3>
        <button
          type="button"
          aria-expanded={open}
          onClick={() => setOpen(!open)}
          className="flex w-full flex-wrap items-baseline gap-x-3 gap-y-1 px-4 py-3 text-start"
        >
          <span className={`w-14 font-mono text-xs font-semibold ${methodColors[operation.method] ?? ""}`}>
            {operation.method}
          </span>
          <code className="font-mono text-xs wrap-anywhere">{operation.path}</code>
          <span className="text-soft text-sm max-sm:basis-full sm:ms-auto">{operation.summary}</span>
        </button>
      </h3>
      {open ? <Details operation={operation} schemas={schemas} known={known} /> : null}
    </article>
  )
}

function Details({
  operation,
  schemas,
  known,
}: {
  operation: Operation
  schemas: Reference["schemas"]
  known: Known | undefined
}): ReactNode {
  const [trying, setTrying] = useState(false)
  const success = operation.answers.filter(({ status }) => status.startsWith("2"))
  const failures = operation.answers.filter(({ status }) => !status.startsWith("2"))
  return (
    <div className="border-line flex flex-col gap-4 border-t px-4 py-4 text-sm">
      {operation.description ? <p className="text-soft">{inline(operation.description)}</p> : null}
      {operation.parameters.length > 0 ? <Parameters parameters={operation.parameters} /> : null}
      {operation.body ? (
        <Part title={t("Body")}>
          <SchemaView schema={operation.body} schemas={schemas} />
        </Part>
      ) : null}
      {success.map(({ status, description, schema }) => (
        <Part key={status} title={t("Response {status}", { status })}>
          {schema ? (
            <SchemaView schema={schema} schemas={schemas} />
          ) : (
            <p className="text-soft">{description}</p>
          )}
        </Part>
      ))}
      <details>
        <summary className="label">{t("Errors")}</summary>
        <dl className="mt-2 flex flex-col gap-2">
          {failures.map(({ status, description }) => (
            <div key={status} className="flex gap-3">
              <dt>
                <Badge>{status}</Badge>
              </dt>
              <dd className="text-soft text-xs whitespace-pre-line">
                {inline(description.replaceAll(/^- /gm, ""))}
              </dd>
            </div>
          ))}
        </dl>
      </details>
      {notFromHere[operation.id] ? (
        <p className="text-soft text-xs">{notFromHere[operation.id]}</p>
      ) : trying && known ? (
        <TryIt operation={operation} schemas={schemas} known={known} />
      ) : (
        <Button className="self-start" icon="play" busy={trying} onClick={() => setTrying(true)}>
          {t("Try it")}
        </Button>
      )}
    </div>
  )
}

function Part({ title, children }: { title: string; children: ReactNode }): ReactNode {
  return (
    <section>
      <h4 className="label mb-1.5">{title}</h4>
      {children}
    </section>
  )
}

function Parameters({ parameters }: { parameters: readonly Parameter[] }): ReactNode {
  return (
    <Part title={t("Parameters")}>
      <dl className="flex flex-col gap-1.5">
        {parameters.map(({ name, in: place, required, description, schema }) => (
          <div key={`${place} ${name}`} className="flex flex-wrap items-baseline gap-x-2 text-xs">
            <dt className="font-mono font-medium">
              {name}
              {required ? (
                <span className="text-bad" title={t("required")}>
                  {" "}
                  *
                </span>
              ) : null}
            </dt>
            <dd className="text-soft">
              <T
                text="{type} in {place}"
                type={<span className="font-mono">{typeOf(schema)}</span>}
                place={place}
              />
              {(description ?? schema.description) ? `: ${description ?? schema.description}` : ""}
            </dd>
          </div>
        ))}
      </dl>
    </Part>
  )
}

/** The descriptions use one mark only: code in backquotes. */
function inline(text: string): ReactNode[] {
  return text.split(/(`[^`]+`)/).map((part, index) =>
    part.startsWith("`") && part.endsWith("`") && part.length > 2 ? (
      <code key={index} className="bg-sunken rounded px-1 font-mono text-[0.92em]">
        {part.slice(1, -1)}
      </code>
    ) : (
      part
    ),
  )
}
