/** The chart by the real tools: Helm finds nothing wrong and renders what we do, the API's schemas take it, and it runs. */
import { spawnSync } from "node:child_process"
import { mkdtempSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { beforeAll, expect, test } from "vitest"
import { parse, parseAllDocuments } from "yaml"
import { renderChart } from "../scripts/render-chart.ts"
import { runChart } from "./chart-run.ts"
import { allOfChart } from "./chart-values.ts"
import { goProgram } from "./go-tools.ts"
import { kubernetesSchemas, kubernetesVersion, schemaPattern } from "./kube-schemas.ts"
import { installMs } from "./run-folder.ts"

const chart = join(import.meta.dirname, "..", "chart")
/** Helm that is built so believes in the oldest Kubernetes. */
const template = ["template", "umpire", chart, "--kube-version", kubernetesVersion]
const runMsMax = 600_000
let helm: string
let kubeconform: string
let schemas: string

beforeAll(() => {
  helm = goProgram("helm.sh/helm/v3/cmd/helm", "v3.22.0")
  kubeconform = goProgram("github.com/yannh/kubeconform/cmd/kubeconform", "v0.8.0")
  schemas = kubernetesSchemas()
}, installMs)

/** What the program printed. */
function run(program: string, args: readonly string[], input?: string): string {
  const { status, stdout, stderr } = spawnSync(program, args, { input, encoding: "utf8" })
  expect([status, stderr, status === 0 ? "" : stdout]).toEqual([0, "", ""])
  return stdout
}

function helmTemplate(values: object): string {
  const file = join(mkdtempSync(join(tmpdir(), "umpire-helm-")), "values.yaml")
  writeFileSync(file, JSON.stringify(values))
  return run(helm, [...template, "--values", file])
}

const conforms = (rendered: string): string =>
  run(kubeconform, ["-strict", "-summary", "-schema-location", join(schemas, schemaPattern)], rendered)

test("helm lint finds nothing", () => {
  expect(run(helm, ["lint", chart])).toContain("1 chart(s) linted, 0 chart(s) failed")
})

test.each([
  ["its own values", {}],
  ["everything", allOfChart],
])("with %s Helm renders what we do, and the API's schemas take it", (_, values) => {
  const rendered = helmTemplate(values)
  expect(byName(rendered)).toEqual(byName(renderChart(values)))
  expect(conforms(rendered)).toMatch(/Invalid: 0, Errors: 0, Skipped: 0/)
})

test("a field that no object has is found", () => {
  const rendered = renderChart().replace("podManagementPolicy:", "podManagementPolice:")
  const location = ["-schema-location", join(schemas, schemaPattern)]
  const { status, stdout } = spawnSync(kubeconform, ["-strict", ...location], {
    input: rendered,
    encoding: "utf8",
  })
  expect([status, stdout]).toEqual([1, expect.stringContaining("podManagementPolice")])
})

test("values that cannot work are refused by Helm: no database, a misspelt name", () => {
  for (const values of ["database.secret=", "gatewayy.replicas=1"]) {
    const { status, stderr } = spawnSync(helm, [...template, "--set", values], {
      encoding: "utf8",
    })
    expect([status, stderr]).toEqual([1, expect.stringContaining("schema")])
  }
})

test(
  "what Helm renders runs with its own arguments",
  async () => {
    await runChart(helmTemplate)
  },
  runMsMax,
)

interface KubernetesObject {
  readonly kind: string
  readonly metadata: { readonly name: string }
}

const byName = (rendered: string): Map<string, unknown> =>
  new Map(
    parseAllDocuments(rendered).map((document) => {
      const object = document.toJS() as KubernetesObject
      return [`${object.kind} ${object.metadata.name}`, comparable(object)]
    }),
  )

/** Helm writes a configuration with its keys in order, and the checksum is of that text. */
function comparable(object: KubernetesObject): unknown {
  const { data, ...rest } = JSON.parse(JSON.stringify(object).replaceAll(/[0-9a-f]{64}/g, "")) as {
    data?: Record<string, string>
  }
  return { ...rest, data: data && Object.values(data).map((text) => parse(text) as unknown) }
}
