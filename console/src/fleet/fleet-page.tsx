/** The installation on one page: gateways, regions, workers with their queues, models in memory; workers are drained here. */
import { useQuery } from "@tanstack/react-query"
import { type ReactNode, useState } from "react"
import { type FleetState, heldDollars, isLocalWorker } from "../../../src/contract/fleet-report.ts"
import { useWrite } from "../api.ts"
import { Button } from "../parts/button.tsx"
import { ConfirmDialog } from "../parts/dialog.tsx"
import { Segments } from "../parts/field.tsx"
import { Figure } from "../parts/figure.tsx"
import { count, decimal } from "../parts/format.ts"
import { Loaded, Notice, Page } from "../parts/page.tsx"
import { chooseTheme, themes, useTheme } from "../theme.ts"
import { EngineTable, GatewayTable, RegionTable } from "./fleet-tables.tsx"
import { readFleet, setDrained } from "./operate.ts"
import { type FleetWorker, WorkerTable } from "./worker-table.tsx"

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
        title="Fleet"
        about="Every gateway of this installation, as it last told; the page renews itself every 2 seconds."
        actions={<ThemeChoice />}
      >
        {fleet.data !== undefined && fleet.error ? (
          <Notice tone="warn">What you see is old: {fleet.error.message}</Notice>
        ) : null}
        <Loaded query={fleet} what="the fleet">
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
      <Section title="Gateways">
        <GatewayTable state={state} />
      </Section>
      <Section title="Workers">
        <WorkerTable
          state={state}
          action={(worker) =>
            isLocalWorker(worker.id) ? (
              <span className="text-soft text-xs">In the gateway</span>
            ) : (
              <Button
                small
                busy={undrain.isPending && undrain.variables.id === worker.id}
                onClick={() => (worker.drained ? undrain.mutate(worker) : setAsked(worker))}
                aria-label={`${worker.drained ? "Undrain" : "Drain"} ${worker.id}`}
              >
                {worker.drained ? "Undrain" : "Drain"}
              </Button>
            )
          }
        />
      </Section>
      <Section title="Models in memory">
        <EngineTable state={state} />
      </Section>
      <Section title="Regions">
        <RegionTable state={state} />
      </Section>
      {asked ? (
        <ConfirmDialog
          title={`Drain ${asked.id}?`}
          submit="Drain"
          act={async () => await setDrained(asked.id, true)}
          refreshes={[fleetKey]}
          onClose={() => setAsked(null)}
        >
          It finishes what it has and gets no new requests, at every gateway within 5 seconds and until it is
          undrained. Requests for a model whose last worker is drained fail.
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
      <Figure framed name="Gateways" value={count(gateways.length)} />
      <Figure framed name="Requests running" value={sum("running")} />
      <Figure framed name="Requests waiting" value={sum("waiting")} />
      <Figure framed name="Credit in leases" value={`$${decimal(held, 4)}`} />
    </dl>
  )
}

function ThemeChoice(): ReactNode {
  const theme = useTheme()
  return (
    <Segments
      label="Theme"
      value={theme}
      options={themes.map((value) => ({
        value,
        label: { system: "System", light: "Light", dark: "Dark" }[value],
      }))}
      onChange={chooseTheme}
    />
  )
}
