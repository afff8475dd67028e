/** Routing policy: in which regions requests run, in which order, and what a request would try. */
import { useQuery } from "@tanstack/react-query"
import { type ReactNode, useState } from "react"
import type { OrganizationResources } from "../../../src/contract/platform/organizations.ts"
import type { RoutingPolicy } from "../../../src/contract/platform/routing-policy.ts"
import { api, useWrite } from "../api.ts"
import { Button } from "../parts/button.tsx"
import { ErrorNotice } from "../parts/error-notice.tsx"
import { Segments } from "../parts/field.tsx"
import { Badge, Loaded, Notice, Page, Panel } from "../parts/page.tsx"
import { moved } from "../parts/moved.ts"
import { Handle, MoveStatus, useReorder } from "../parts/reorder.tsx"
import { Table } from "../parts/table.tsx"
import { ModelSelect } from "../playground/model-select.tsx"
import { modelsQuery, useIsOwner, useOrganization } from "../session.ts"
import { type Preview, previewRoute } from "./preview.ts"
import { t } from "../i18n/translate.ts"

type Region = OrganizationResources["regions"][number]

export function RoutingPage(): ReactNode {
  const { id: org_id } = useOrganization()
  const policy = useQuery({
    queryKey: ["routing", org_id],
    queryFn: async () => await api.getRoutingPolicy({ params: { org_id } }),
  })
  const resources = useQuery({
    queryKey: ["resources", org_id],
    queryFn: async () => await api.getOrganizationResources({ params: { org_id } }),
  })
  return (
    <Page
      title={t("Routing")}
      about={t(
        "The regions in which this organization's requests may run, and the order in which they are tried.",
      )}
    >
      <Loaded query={policy} label={t("Loading the routing policy")}>
        {(saved) => (
          <Loaded query={resources} label={t("Loading the regions")}>
            {({ regions }) => <Policy saved={saved} regions={regions} />}
          </Loaded>
        )}
      </Loaded>
    </Page>
  )
}

function Policy({ saved, regions }: { saved: RoutingPolicy; regions: readonly Region[] }): ReactNode {
  const { id: org_id } = useOrganization()
  const owner = useIsOwner()
  const [policy, setPolicy] = useState(saved)
  const models = useQuery(modelsQuery(org_id)).data ?? []
  const [chosen, setChosen] = useState("")
  const model = chosen || (models[0]?.model_sku ?? "")
  const preview = previewRoute(policy, regions, model)
  const write = useWrite(
    async () => await api.putRoutingPolicy({ params: { org_id }, body: policy }),
    [["routing", org_id]],
  )
  const changed = JSON.stringify(policy) !== JSON.stringify(saved)
  return (
    <div className="grid grid-cols-1 items-start gap-4 lg:grid-cols-[minmax(0,3fr)_minmax(0,2fr)]">
      <div className="flex flex-col gap-4">
        {regions.length > 1 ? <RegionTable regions={regions} preview={preview} /> : null}
        <Panel title={t("What a request would try")}>
          <div className="flex flex-col gap-3">
            <label className="flex flex-wrap items-center gap-2 text-sm">
              {t("A request for")}
              <ModelSelect label={t("Model")} models={models} value={model} onChange={setChosen} />
            </label>
            <PreviewSteps preview={preview} regions={regions} />
          </div>
        </Panel>
      </div>
      <Panel title={t("Policy")}>
        <div className="flex flex-col gap-5">
          <fieldset disabled={!owner || write.isPending} className="flex flex-col gap-5">
            <Choice
              title={t("First region")}
              value={policy.mode}
              options={[
                { value: "nearest", label: t("Nearest") },
                { value: "ordered", label: t("Ordered") },
                { value: "required", label: t("Required") },
              ]}
              hint={modeHints[policy.mode]}
              onChange={(mode) => setPolicy({ ...policy, mode })}
            />
            <Choice
              title={t("Fallback")}
              value={policy.fallback}
              options={[
                { value: "visible_regions", label: t("Any region") },
                { value: "same_country", label: t("Same country") },
                { value: "disabled", label: t("No fallback") },
              ]}
              hint={fallbackHints[policy.fallback]}
              onChange={(fallback) => setPolicy({ ...policy, fallback })}
            />
            <RegionList
              policy={policy}
              regions={regions}
              onChange={(next) => setPolicy({ ...policy, regions: next })}
            />
          </fieldset>
          <ErrorNotice error={write.error} />
          {write.isSuccess && !changed ? (
            <Notice tone="good">{t("Saved. It applies from the next request on.")}</Notice>
          ) : null}
          {owner ? (
            <div className="flex gap-2">
              <Button
                kind="loud"
                busy={write.isPending}
                disabled={!changed}
                onClick={() => write.mutate(undefined)}
              >
                {t("Save policy")}
              </Button>
              {changed ? <Button onClick={() => setPolicy(saved)}>{t("Discard changes")}</Button> : null}
            </div>
          ) : (
            <Notice tone="info">{t("Only owners can change the routing policy.")}</Notice>
          )}
        </div>
      </Panel>
    </div>
  )
}

const modeHints = {
  nearest: t("The allowed region closest to the gateway."),
  ordered: t("The first allowed region of your list that hosts the model."),
  required: t("The first region of your list, or the request is refused."),
}
const fallbackHints = {
  visible_regions: t("Every other allowed region is tried."),
  same_country: t("Only allowed regions in the first one's country are tried."),
  disabled: t("No other region is tried."),
}

function Choice<Value extends string>({
  title,
  hint,
  ...rest
}: {
  title: string
  value: Value
  hint: string
  options: readonly { value: Value; label: string }[]
  onChange: (value: Value) => void
}): ReactNode {
  return (
    <div className="flex flex-col items-start gap-1.5">
      <span className="label">{title}</span>
      <Segments label={title} {...rest} />
      <span className="text-soft text-xs">{hint}</span>
    </div>
  )
}

function RegionList({
  policy,
  regions,
  onChange,
}: {
  policy: RoutingPolicy
  regions: readonly Region[]
  onChange: (regions: string[]) => void
}): ReactNode {
  const listed = policy.regions
  const drag = useReorder(listed.length, (from, to) => onChange(moved(listed, from, to)))
  const others = regions.filter(({ id }) => !listed.includes(id))
  return (
    <div className="flex flex-col gap-1.5">
      <span className="label">{t("Allowed regions")}</span>
      {listed.length === 0 ? (
        <p className="text-soft text-sm">{t("All regions are allowed. Add regions to allow only those.")}</p>
      ) : null}
      <ol className="flex flex-col gap-1.5" aria-label={t("Allowed regions")}>
        {listed.map((id, index) => (
          <li
            key={id}
            {...drag.row(index)}
            className={`bg-sunken flex items-center gap-2 rounded-md px-2 py-1.5 text-sm ${drag.isTarget(index) ? "ring-accent ring-2" : ""}`}
          >
            <Handle label={t("Move {id}", { id })} drag={drag.handle(index)} />
            <span className="number text-soft">{index + 1}</span>
            <span className="flex-1">{id}</span>
            <Button
              kind="bare"
              small
              icon="up"
              disabled={index === 0}
              aria-label={t("Move {id} up", { id })}
              onClick={() => onChange(moved(listed, index, index - 1))}
            />
            <Button
              kind="bare"
              small
              icon="cross"
              aria-label={t("Remove {id}", { id })}
              onClick={() => onChange(listed.toSpliced(index, 1))}
            />
          </li>
        ))}
      </ol>
      <MoveStatus drag={drag} />
      <div className="flex flex-wrap gap-1.5">
        {others.map(({ id, country }) => (
          <Button key={id} small icon="plus" onClick={() => onChange([...listed, id])}>
            {country === noCountry ? id : `${id} (${country})`}
          </Button>
        ))}
      </div>
    </div>
  )
}

/** Set aside for private use; the region of an installation that names none has it. */
const noCountry = "ZZ"

const regionName = (id: string, country: string | undefined): string =>
  country === undefined || country === noCountry ? id : `${id} · ${country}`

function PreviewSteps({ preview, regions }: { preview: Preview; regions: readonly Region[] }): ReactNode {
  if ("refused" in preview)
    return (
      <Notice tone="bad">
        {t("This request would be refused.")} {preview.refused}.
      </Notice>
    )
  return (
    <ol className="flex flex-wrap items-center gap-2 text-sm" aria-label={t("Regions tried in order")}>
      {preview.tries.map((id, index) => (
        <li key={id} className="flex items-center gap-2">
          {index > 0 ? (
            <span className="text-soft text-xs">{t("then")}</span>
          ) : (
            <span className="text-soft text-xs">{t("first")}</span>
          )}
          <Badge tone={index === 0 ? "good" : "plain"}>
            {regionName(id, regions.find((region) => region.id === id)?.country)}
          </Badge>
        </li>
      ))}
    </ol>
  )
}

function RegionTable({ regions, preview }: { regions: readonly Region[]; preview: Preview }): ReactNode {
  const tries = "tries" in preview ? preview.tries : []
  return (
    <Table
      label={t("Regions")}
      rows={regions}
      rowKey={({ id }) => id}
      columns={[
        { name: t("Region"), cell: ({ id }) => id },
        { name: t("Country"), cell: ({ country }) => (country === noCountry ? "" : country) },
        {
          name: t("Here"),
          cell: ({ home }) => (home ? <Badge tone="good">{t("this gateway")}</Badge> : null),
        },
        {
          name: t("Tried"),
          align: "right",
          cell: ({ id }) => (tries.includes(id) ? `${tries.indexOf(id) + 1}.` : t("not tried")),
        },
      ]}
    />
  )
}
