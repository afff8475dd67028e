/** Sends one call from the reference, with the console's session or a key, and shows what came back. */
import { type FormEvent, type ReactNode, useState } from "react"
import { sentenceOf } from "../api.ts"
import { csrfHeaders } from "../connection.ts"
import { Button } from "../parts/button.tsx"
import { CopyButton } from "../parts/copy-button.tsx"
import { AreaField, TextField } from "../parts/field.tsx"
import { milliseconds } from "../parts/format.ts"
import { Badge, Notice } from "../parts/page.tsx"
import { curlOf } from "../playground/code.ts"
import type { Operation, Reference } from "./document.ts"
import { type Known, bodyFor, parametersFor, placeholders } from "./examples.ts"
import { t } from "../i18n/translate.ts"

interface Outcome {
  readonly status: number
  readonly tookMs: number
  readonly requestId: string | null
  readonly body: string
}

const shownCharactersMax = 100_000

export function TryIt({
  operation,
  schemas,
  known,
}: {
  operation: Operation
  schemas: Reference["schemas"]
  known: Known
}): ReactNode {
  const fields = operation.parameters.filter(({ in: place }) => place !== "header")
  const [values, setValues] = useState(() => parametersFor(operation, known, Date.now()))
  const [body, setBody] = useState(() =>
    operation.body ? JSON.stringify(bodyFor(operation, known, schemas), null, 2) : "",
  )
  const [key, setKey] = useState("")
  const [busy, setBusy] = useState(false)
  const [outcome, setOutcome] = useState<Outcome | { readonly error: string } | null>(null)
  const send = async (): Promise<void> => {
    setBusy(true)
    try {
      setOutcome(await call(operation, { values, body, key, organizationId: known.organizationId }))
    } catch (error) {
      setOutcome({ error: sentenceOf(error) })
    } finally {
      setBusy(false)
    }
  }
  const submit = (event: FormEvent): void => {
    event.preventDefault()
    void send()
  }
  return (
    <form
      onSubmit={submit}
      className="bg-sunken/50 flex flex-col gap-3 rounded-lg p-3"
      aria-label={t("Try {summary}", { summary: operation.summary })}
    >
      <div className="grid grid-cols-1 gap-3 sm:grid-cols-2">
        {fields.map(({ name, required }) => (
          <TextField
            key={name}
            label={name}
            required={required}
            placeholder={placeholders[name]}
            value={values[name] ?? ""}
            onChange={(event) => setValues({ ...values, [name]: event.target.value })}
          />
        ))}
        <TextField
          label={t("API key (empty: your session)")}
          type="password"
          autoComplete="off"
          value={key}
          onChange={(event) => setKey(event.target.value)}
        />
      </div>
      {operation.body ? (
        <AreaField
          label={t("Body")}
          rows={Math.min(14, body.split("\n").length + 1)}
          className="font-mono text-xs"
          value={body}
          onChange={(event) => setBody(event.target.value)}
        />
      ) : null}
      <div className="flex flex-wrap gap-2">
        <Button type="submit" kind="loud" icon="send" busy={busy}>
          {t("Send")}
        </Button>
        <CopyButton
          small={false}
          label={t("Copy as curl")}
          text={curlOf(operation.method, addressOf(operation, values).href, operation.body ? body : null)}
        />
      </div>
      {outcome ? <OutcomeView outcome={outcome} /> : null}
    </form>
  )
}

interface Call {
  readonly values: Readonly<Record<string, string>>
  readonly body: string
  readonly key: string
  readonly organizationId: string
}

function addressOf({ path, parameters }: Operation, values: Call["values"]): URL {
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(values[name] ?? ""))
  const address = new URL(filled, location.origin)
  for (const { name, in: place } of parameters)
    if (place === "query" && values[name]) address.searchParams.set(name, values[name])
  return address
}

async function call(operation: Operation, { values, body, key, organizationId }: Call): Promise<Outcome> {
  const hasBody = operation.body !== null
  // A key is of one organization; a session must say which one it means.
  const who = key
    ? { authorization: `Bearer ${key}` }
    : organizationId
      ? { "x-umpire-organization": organizationId }
      : {}
  const startedMs = performance.now()
  const response = await fetch(addressOf(operation, values), {
    method: operation.method,
    // With a key the session must stay out of it.
    credentials: key ? "omit" : "same-origin",
    headers: { ...csrfHeaders, ...who, ...(hasBody ? { "content-type": "application/json" } : {}) },
    ...(hasBody ? { body } : {}),
  })
  const text = await response.text()
  return {
    status: response.status,
    tookMs: performance.now() - startedMs,
    requestId: response.headers.get("x-request-id"),
    body: pretty(text).slice(0, shownCharactersMax),
  }
}

function pretty(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}

function OutcomeView({ outcome }: { outcome: Outcome | { readonly error: string } }): ReactNode {
  if ("error" in outcome) return <Notice tone="bad">{outcome.error}</Notice>
  return (
    <div className="flex flex-col gap-2" role="status" aria-label={t("Answer")}>
      <p className="number text-soft flex flex-wrap items-center gap-2 text-xs">
        <Badge tone={outcome.status < 400 ? "good" : "bad"}>{outcome.status}</Badge>
        {milliseconds(outcome.tookMs)} · {outcome.requestId}
        <CopyButton text={outcome.body} label={t("Copy answer")} bare />
      </p>
      <pre
        tabIndex={0}
        aria-label={t("Answer body")}
        className="bg-panel border-line max-h-80 overflow-auto rounded-md border p-2 font-mono text-xs"
      >
        {outcome.body || t("no body")}
      </pre>
    </div>
  )
}
