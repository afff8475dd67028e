/** The queries of the Grafana dashboard, and which of them Prometheus has no data for. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import type { TestPrometheus } from "./prometheus.ts"

interface Dashboard {
  readonly panels: readonly {
    readonly title: string
    readonly targets?: readonly { readonly expr: string }[]
  }[]
  readonly templating: { readonly list: readonly { readonly query: string }[] }
}

const file = join(import.meta.dirname, "..", "deploy", "grafana-dashboard.json")
export const dashboard = JSON.parse(readFileSync(file, "utf8")) as Dashboard

/** As Grafana fills in its variables. */
const filled = (expression: string): string =>
  expression.replaceAll("$__rate_interval", "1m").replaceAll(/\$(?:instance|model)/g, ".*")

/** By the title of the panel. */
export const panelQueries = dashboard.panels.flatMap(({ title, targets = [] }) =>
  targets.map(({ expr }): [string, string] => [title, filled(expr)]),
)

/** Those that return nothing now. */
export async function queriesWithoutData(
  prometheus: Pick<TestPrometheus, "query">,
  expressions: readonly string[] = panelQueries.map(([, expression]) => expression),
): Promise<string[]> {
  const empty: string[] = []
  for (const expression of expressions)
    if ((await prometheus.query(expression)).length === 0) empty.push(expression)
  return empty
}
