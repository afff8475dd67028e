/** The models of the catalog: what each costs, and why one cannot be used yet. */
import { useQuery } from "@tanstack/react-query"
import { Link } from "@tanstack/react-router"
import type { ReactNode } from "react"
import type { ModelStatus, OrgModel } from "../../../src/contract/platform/models.ts"
import { api, useWrite } from "../api.ts"
import { Button } from "../parts/button.tsx"
import { ErrorNotice } from "../parts/error-notice.tsx"
import { Figure } from "../parts/figure.tsx"
import { ago, count, percent } from "../parts/format.ts"
import { Badge, Empty, Loaded, Page, type Tone } from "../parts/page.tsx"
import { usePages } from "../parts/more.tsx"
import { Table } from "../parts/table.tsx"
import { canDo } from "../playground/models.ts"
import { modelsQuery, useOrganization } from "../session.ts"

const statuses: Record<ModelStatus, { readonly tone: Tone; readonly words: string }> = {
  active: { tone: "good", words: "Available" },
  disabled: { tone: "plain", words: "Disabled" },
  access_pending: { tone: "warn", words: "Access requested" },
  access_required: { tone: "warn", words: "Access required" },
  billing_setup_failed: { tone: "bad", words: "Billing setup failed" },
  payment_method_required: { tone: "bad", words: "Payment method required" },
  prepaid_credits_required: { tone: "bad", words: "Out of credit" },
  spend_limit_exceeded: { tone: "bad", words: "Spend limit reached" },
}

const billingStatuses: readonly ModelStatus[] = [
  "billing_setup_failed",
  "payment_method_required",
  "prepaid_credits_required",
  "spend_limit_exceeded",
]

export function ModelsPage(): ReactNode {
  const { id: org_id } = useOrganization()
  const models = useQuery(modelsQuery(org_id))
  const ask = useWrite(
    async (model_sku: string) => await api.requestModelAccess({ params: { org_id }, body: { model_sku } }),
    [
      ["models", org_id],
      ["model-access", org_id],
    ],
  )
  return (
    <Page title="Models" about="The models this organization can use. Prices are per million tokens.">
      <ErrorNotice error={ask.error} />
      <Loaded query={models} what="models">
        {(rows) =>
          rows.length === 0 ? (
            <div className="panel">
              <Empty icon="layers" title="No models">
                The operator adds models with <code>umpire models add</code>.
              </Empty>
            </div>
          ) : (
            <>
              <ModelCards
                models={rows.filter(({ virtual }) => virtual === null)}
                busy={ask.isPending}
                onAsk={ask.mutate}
              />
              <VirtualModels
                models={rows.filter(({ virtual }) => virtual !== null)}
                busy={ask.isPending}
                onAsk={ask.mutate}
              />
            </>
          )
        }
      </Loaded>
      <AccessRequests />
    </Page>
  )
}

interface CardsProps {
  readonly models: readonly OrgModel[]
  readonly busy: boolean
  readonly onAsk: (sku: string) => void
}

function ModelCards({ models, busy, onAsk }: CardsProps): ReactNode {
  return (
    <ul className="grid grid-cols-1 gap-3 md:grid-cols-2">
      {models.map((model) => (
        <li key={model.model_sku}>
          <ModelCard model={model} busy={busy} onAsk={() => onAsk(model.model_sku)} />
        </li>
      ))}
    </ul>
  )
}

function VirtualModels(props: CardsProps): ReactNode {
  if (props.models.length === 0) return null
  return (
    <section className="flex flex-col gap-3" aria-label="Virtual models">
      <div>
        <h2 className="text-sm font-semibold">Virtual models</h2>
        <p className="text-soft text-xs">
          Names that requests use like a model, and that stand for others. Their prices are the most that a
          request can cost.
        </p>
      </div>
      <ModelCards {...props} />
    </section>
  )
}

type Virtual = NonNullable<OrgModel["virtual"]>

/** What kind of virtual model it is, and what it does with a request. */
function ruleWords({ alias, fallback, split, cascade }: Virtual): readonly [kind: string, rule: string] {
  if (alias !== null) return ["alias", `Another name of ${alias}`]
  if (fallback !== null) return ["fallback", `Tried in this order until one answers: ${fallback.join(", ")}`]
  if (split !== null) {
    const sum = split.reduce((whole, { weight }) => whole + weight, 0) || 1
    return ["split", split.map(({ model, weight }) => `${percent(weight / sum)} ${model}`).join(", ")]
  }
  if (cascade !== null) {
    const { predicate, choice, score } = cascade.thresholds
    return [
      "cascade",
      `${cascade.models.join(", then ")}. The next is asked below ${percent(predicate)} for yes or no, ${percent(choice)} for a choice, ${percent(score)} for a score.`,
    ]
  }
  return ["virtual", ""]
}

function ModelCard({ model, busy, onAsk }: { model: OrgModel; busy: boolean; onAsk: () => void }): ReactNode {
  const { id: orgId } = useOrganization()
  const status = statuses[model.status]
  const [kind, rule] = model.virtual ? ruleWords(model.virtual) : [null, null]
  const quantization = kind === null && model.quantization !== "unknown" ? model.quantization : null
  return (
    <article className="panel flex h-full flex-col gap-3 p-4" aria-label={model.model_sku}>
      <header className="flex items-start justify-between gap-3">
        <div className="min-w-0">
          <h2 className="font-mono text-sm font-semibold wrap-anywhere">{model.model_sku}</h2>
          <p className="text-soft text-xs">
            {[kind, model.developer, purposeOf(model), quantization].filter(Boolean).join(" · ")}
          </p>
        </div>
        <Badge tone={status.tone}>{status.words}</Badge>
      </header>
      {rule ? <p className="text-sm wrap-anywhere">{rule}</p> : null}
      <dl className="number grid grid-cols-2 gap-x-4 gap-y-1.5 text-xs sm:grid-cols-4">
        <Figure look="plain" name="Context" value={`${count(model.max_context_len)} tokens`} />
        {model.price_per_sec_usd > 0 ? (
          <Figure look="plain" name="Per second" value={price(model.price_per_sec_usd)} />
        ) : (
          <>
            <Figure look="plain" name="Input" value={price(model.price_m_input_tokens_usd)} />
            {canDo(model, "chat") ? (
              <>
                <Figure
                  look="plain"
                  name="Cached input"
                  value={price(model.price_m_input_cache_read_tokens_usd)}
                />
                <Figure look="plain" name="Output" value={price(model.price_m_output_tokens_usd)} />
              </>
            ) : null}
          </>
        )}
      </dl>
      <p className="flex flex-wrap gap-1 empty:hidden">
        {model.input_modalities
          .filter((modality) => modality !== "text")
          .map((modality) => (
            <Badge key={modality}>{modality}</Badge>
          ))}
        {model.tools_supported ? <Badge>tools</Badge> : null}
        {model.public ? null : <Badge>Restricted</Badge>}
        {model.access === "deny" ? <Badge tone="bad">Access denied</Badge> : null}
      </p>
      {model.status === "access_required" ? (
        <Button small className="self-start" busy={busy} onClick={onAsk}>
          Request access
        </Button>
      ) : null}
      {billingStatuses.includes(model.status) ? (
        <Link to="/o/$orgId/billing" params={{ orgId }} className="text-accent text-xs underline">
          Open Billing
        </Link>
      ) : null}
    </article>
  )
}

const price = (usd: number): string => (usd === 0 ? "Free" : `$${Number(usd.toPrecision(6))}`)

function AccessRequests(): ReactNode {
  const { id: org_id } = useOrganization()
  const query = usePages(
    ["model-access", org_id],
    async (page) => await api.listModelAccessRequests({ params: { org_id }, query: page }),
  )
  if (!query.data || query.data.length === 0) return null
  return (
    <section className="flex flex-col gap-3" aria-label="Access requests">
      <h2 className="text-sm font-semibold">Access requests</h2>
      <Table
        label="Access requests"
        rows={query.data}
        rowKey={({ id }) => id}
        columns={[
          { name: "Model", cell: ({ model_sku }) => <span className="font-mono">{model_sku}</span> },
          {
            name: "State",
            cell: ({ state }) => (
              <Badge tone={state === "grant" ? "good" : state === "deny" ? "bad" : "warn"}>
                {{ grant: "Granted", deny: "Denied", pending: "Pending" }[state]}
              </Badge>
            ),
          },
          { name: "Requested", cell: ({ created_at }) => ago(created_at) },
          { name: "Decided", cell: ({ decided_at }) => (decided_at ? ago(decided_at) : "Not yet") },
        ]}
      />
    </section>
  )
}

function purposeOf({ model_kind, tools_supported }: OrgModel): string {
  if (model_kind === "embedding") return "embeddings"
  return tools_supported ? "decisions and text" : "decisions"
}
