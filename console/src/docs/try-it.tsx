/** Sends one call from the reference, with the console's session or a key, and shows what came back. */
import { type FormEvent, type ReactNode, useState } from "react"
import { sentenceOf } from "../api.ts"
import { lastOrganization } from "../session.ts"
import { csrfHeaders } from "../connection.ts"
import { Button, CopyButton } from "../parts/button.tsx"
import { AreaField, TextField } from "../parts/field.tsx"
import { milliseconds } from "../parts/format.ts"
import { Badge, Notice } from "../parts/page.tsx"
import { type Operation, type Reference, exampleOf } from "./document.ts"

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
}: {
  operation: Operation
  schemas: Reference["schemas"]
}): ReactNode {
  const fields = operation.parameters.filter(({ in: place }) => place !== "header")
  const [values, setValues] = useState<Record<string, string>>(() => known())
  const [body, setBody] = useState(() =>
    operation.body ? JSON.stringify(exampleOf(operation.body, schemas), null, 2) : "",
  )
  const [key, setKey] = useState("")
  const [busy, setBusy] = useState(false)
  const [outcome, setOutcome] = useState<Outcome | { readonly error: string } | null>(null)
  const send = async (): Promise<void> => {
    setBusy(true)
    try {
      setOutcome(await call(operation, values, body, key))
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
      aria-label={`Try ${operation.summary}`}
    >
      <div className="grid grid-cols-1 gap-3 sm:grid-cols-2">
        {fields.map(({ name, required }) => (
          <TextField
            key={name}
            label={name}
            required={required}
            value={values[name] ?? ""}
            onChange={(event) => setValues({ ...values, [name]: event.target.value })}
          />
        ))}
        <TextField
          label="API key (empty: your session)"
          type="password"
          autoComplete="off"
          value={key}
          onChange={(event) => setKey(event.target.value)}
        />
      </div>
      {operation.body ? (
        <AreaField
          label="Body"
          rows={Math.min(14, body.split("\n").length + 1)}
          className="font-mono text-xs"
          value={body}
          onChange={(event) => setBody(event.target.value)}
        />
      ) : null}
      <Button type="submit" kind="loud" icon="send" className="self-start" busy={busy}>
        Send
      </Button>
      {outcome ? <OutcomeView outcome={outcome} /> : null}
    </form>
  )
}

/** The organization one was in last fills the paths that need one. */
function known(): Record<string, string> {
  const organization = lastOrganization()
  return organization ? { org_id: organization } : {}
}

async function call(
  { method, path, parameters, body: schema }: Operation,
  values: Readonly<Record<string, string>>,
  body: string,
  key: string,
): Promise<Outcome> {
  const address = new URL(
    path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(values[name] ?? "")),
    location.origin,
  )
  for (const { name, in: place } of parameters)
    if (place === "query" && values[name]) address.searchParams.set(name, values[name])
  const startedMs = performance.now()
  const response = await fetch(address, {
    method,
    // With a key the session must stay out of it.
    credentials: key ? "omit" : "same-origin",
    headers: {
      ...csrfHeaders,
      ...(key ? { authorization: `Bearer ${key}` } : {}),
      ...(schema ? { "content-type": "application/json" } : {}),
    },
    ...(schema ? { body } : {}),
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
    <div className="flex flex-col gap-2" role="status" aria-label="Answer">
      <p className="number text-soft flex flex-wrap items-center gap-2 text-xs">
        <Badge tone={outcome.status < 400 ? "good" : "bad"}>{outcome.status}</Badge>
        {milliseconds(outcome.tookMs)} · {outcome.requestId}
        <CopyButton text={outcome.body} label="Copy answer" bare />
      </p>
      <pre
        tabIndex={0}
        aria-label="Answer body"
        className="bg-panel border-line max-h-80 overflow-auto rounded-md border p-2 font-mono text-xs"
      >
        {outcome.body || "no body"}
      </pre>
    </div>
  )
}
