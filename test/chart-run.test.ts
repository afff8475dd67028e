/** What the chart renders runs; the real Helm renders it in the long tests. */
import { test } from "vitest"
import { renderChart } from "../scripts/render-chart.ts"
import { runChart } from "./chart-run.ts"

test("the worker answers the gateway's decisions, and metrics are on their own port for who has the key", async () => {
  await runChart(renderChart)
})
