/** The installation on one page: gateways, regions, workers with their queues, models in memory; workers are drained here. */
import { useQuery } from "@tanstack/react-query"
import { type ReactNode, useState } from "react"
import { type FleetState, heldDollars, isLocalWorker } from "../../../src/contract/fleet-report.ts"
import { useWrite } from "../api.ts"
import { Button } from "../parts/button.tsx"
import { ConfirmDialog } from "../parts/dialog.tsx"
import { Segments } from "../parts/field.tsx"
import { Figure } from "../parts/figure.tsx"
import { count, dollarsTo } from "../parts/format.ts"
import { Loaded, Notice, Page } from "../parts/page.tsx"
import { chooseTheme, themes, useTheme } from "../theme.ts"
import { EngineTable, GatewayTable, RegionTable } from "./fleet-tables.tsx"
import { readFleet, setDrained } from "./operate.ts"
import { type FleetWorker, WorkerTable } from "./worker-table.tsx"
import { t } from "../i18n/translate.ts"

const everyMs = 2_000
const fleetKey = ["fleet"]

export function FleetPage(): ReactNode {
  const fleet = useQuery({
    queryKey: fleetKey,
    queryFn: readFleet,
    refetchInterval: everyMs,
    retry: false,
  })
  return (
    <main className="min-h-dvh">
      <Page
        title={t("Fleet")}
        about={t(
          "Every gateway of this installation, as it last told; the page renews itself every 2 seconds.",
        )}
        actions={<ThemeChoice />}
      >
        {fleet.data !== undefined && fleet.error ? (
          <Notice tone="warn">{t("What you see is old: {message}", { message: fleet.error.message })}</Notice>
        ) : null}
        <Loaded query={fleet} label={t("Loading the fleet")}>
          {(state) => <FleetView state={state} />}
        </Loaded>
      </Page>
    </main>
  )
}

function FleetView({ state }: { state: FleetState }): ReactNode {
  const [asked, setAsked] = useState<FleetWorker | null>(null)
  const undrain = useWrite(async ({ id }: FleetWorker) => await setDrained(id, false), [fleetKey])
  return (
    <>
      <Figures state={state} />
      {undrain.error ? <Notice tone="bad">{undrain.error.message}</Notice> : null}
      <Section title={t("Gateways")}>
        <GatewayTable state={state} />
      </Section>
      <Section title={t("Workers")}>
        <WorkerTable
          state={state}
          action={(worker) =>
            isLocalWorker(worker.id) ? (
              <span className="text-soft text-xs">{t("In the gateway")}</span>
            ) : (
              <Button
                small
                busy={undrain.isPending && undrain.variables.id === worker.id}
                onClick={() => (worker.drained ? undrain.mutate(worker) : setAsked(worker))}
                aria-label={`${worker.drained ? t("Undrain") : t("Drain")} ${worker.id}`}
              >
                {worker.drained ? t("Undrain") : t("Drain")}
              </Button>
            )
          }
        />
      </Section>
      <Section title={t("Models in memory")}>
        <EngineTable state={state} />
      </Section>
      <Section title={t("Regions")}>
        <RegionTable state={state} />
      </Section>
      {asked ? (
        <ConfirmDialog
          title={t("Drain {id}?", { id: asked.id })}
          submit={t("Drain")}
          act={async () => await setDrained(asked.id, true)}
          refreshes={[fleetKey]}
          onClose={() => setAsked(null)}
        >
          {t(
            "It finishes what it has and gets no new requests, at every gateway within 5 seconds and until it is undrained. Requests for a model whose last worker is drained fail.",
          )}
        </ConfirmDialog>
      ) : null}
    </>
  )
}

function Section({ title, children }: { title: string; children: ReactNode }): ReactNode {
  return (
    <section aria-label={title} className="flex min-w-0 flex-col gap-2">
      <h2 className="text-sm font-semibold">{title}</h2>
      {children}
    </section>
  )
}

function Figures({ state: { gateways } }: { state: FleetState }): ReactNode {
  const workers = gateways.flatMap(({ models }) => models.flatMap((model) => model.workers))
  const sum = (field: "running" | "waiting"): string =>
    count(workers.reduce((total, worker) => total + worker[field], 0))
  const held = gateways.reduce((total, { leases }) => total + heldDollars(leases), 0)
  return (
    <dl className="grid grid-cols-2 gap-3 md:grid-cols-4">
      <Figure framed name={t("Gateways")} value={count(gateways.length)} />
      <Figure framed name={t("Requests running")} value={sum("running")} />
      <Figure framed name={t("Requests waiting")} value={sum("waiting")} />
      <Figure framed name={t("Credit in leases")} value={dollarsTo(held, 4)} />
    </dl>
  )
}

function ThemeChoice(): ReactNode {
  const theme = useTheme()
  return (
    <Segments
      label={t("Theme")}
      value={theme}
      options={themes.map((value) => ({
        value,
        label: { system: t("System"), light: t("Light"), dark: t("Dark") }[value],
      }))}
      onChange={chooseTheme}
    />
  )
}
