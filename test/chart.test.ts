/** The Helm chart and the compose file: what they render to, and that they agree with the program. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { Ajv } from "ajv"
import { describe, expect, test } from "vitest"
import { parse, parseAllDocuments } from "yaml"
import manifest from "../package.json" with { type: "json" }
import { renderChart } from "../scripts/render-chart.ts"
import { configKeys, environmentOnly } from "../src/base/config.ts"

const root = join(import.meta.dirname, "..")
const read = (...path: string[]): string => readFileSync(join(root, ...path), "utf8")

interface KubernetesObject {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: { readonly name: string; readonly labels: Record<string, string> }
  readonly spec: Record<string, unknown>
}

function objectsOf(values: object = {}): KubernetesObject[] {
  return parseAllDocuments(renderChart(values)).map((document) => {
    expect(document.errors).toEqual([])
    return document.toJS() as KubernetesObject
  })
}

const kindsOf = (values: object = {}): string[] =>
  objectsOf(values)
    .map(({ kind }) => kind)
    .toSorted()

const gateway = (values: object): unknown =>
  objectsOf(values).find(({ kind }) => kind === "StatefulSet")?.spec

const everything = {
  clickhouse: { secret: "events" },
  bootstrap: { secret: "first" },
  config: { models: [{ sku: "a", context_tokens_max: 10 }] },
  env: [{ name: "UMPIRE_LOG_LEVEL", value: "debug" }],
  gateway: { journal: { storageClass: "fast" }, nodeSelector: { disk: "ssd" }, tolerations: [{ key: "a" }] },
  worker: { enabled: true },
  autoscaling: { enabled: true },
  serviceMonitor: { enabled: true },
}

describe("the chart", () => {
  test("renders what is asked for, and nothing else", () => {
    expect(kindsOf()).toEqual(["PodDisruptionBudget", "Service", "Service", "StatefulSet"])
    expect(kindsOf({ disruptionBudget: { enabled: false } })).toEqual(["Service", "Service", "StatefulSet"])
    expect(kindsOf(everything)).toEqual([
      "ConfigMap",
      "Deployment",
      "HorizontalPodAutoscaler",
      "PodDisruptionBudget",
      "Service",
      "Service",
      "Service",
      "ServiceMonitor",
      "StatefulSet",
    ])
  })

  test("every object has a version, a name and labels, and names are not used twice", () => {
    const objects = objectsOf(everything)
    for (const { apiVersion, metadata } of objects) {
      expect(apiVersion).toMatch(/^(?:[\w.]+\/)?v\d$/)
      expect(metadata.name).toMatch(/^umpire/)
      expect(metadata.labels).toMatchObject({ "app.kubernetes.io/version": manifest.version })
    }
    const names = objects.map(({ kind, metadata }) => `${kind} ${metadata.name}`)
    expect(new Set(names).size).toBe(names.length)
  })

  test("pods run as an ordinary user on a read-only root, are drained, and only name variables that exist", () => {
    const known = [...configKeys().flatMap(({ variable }) => variable ?? []), ...Object.keys(environmentOnly)]
    for (const { kind, spec } of objectsOf(everything)) {
      if (kind !== "StatefulSet" && kind !== "Deployment") continue
      const { template, selector } = spec as unknown as Workload
      expect(template.metadata.labels).toMatchObject(selector.matchLabels)
      expect(template.spec.terminationGracePeriodSeconds).toBeGreaterThan(30)
      for (const container of template.spec.containers) {
        expect(container.securityContext).toMatchObject({
          runAsNonRoot: true,
          readOnlyRootFilesystem: true,
          allowPrivilegeEscalation: false,
          capabilities: { drop: ["ALL"] },
        })
        expect(container.image).toBe(`umpire:${manifest.version}`)
        for (const { name } of container.env) expect(known).toContain(name)
        const volumes = template.spec.volumes.map(({ name }) => name).concat("journal")
        for (const { name } of container.volumeMounts) expect(volumes).toContain(name)
      }
    }
  })

  test("with autoscaling the number of gateways is left to it", () => {
    expect(gateway({})).toMatchObject({ replicas: 2 })
    expect(gateway({ autoscaling: { enabled: true } })).not.toHaveProperty("replicas")
  })

  test("the default values meet the schema of values, and mistakes do not", () => {
    const validate = new Ajv({ strict: false }).compile(
      JSON.parse(read("chart", "values.schema.json")) as object,
    )
    const values = parse(read("chart", "values.yaml")) as Record<string, object>
    expect(validate(values)).toBe(true)
    expect(validate({ ...values, service: { type: "Elsewhere" } })).toBe(false)
    expect(validate({ ...values, database: { secret: "", key: "database-url" } })).toBe(false)
    expect(validate({ ...values, gatewayy: {} })).toBe(false)
  })

  test("deploy/kubernetes.yaml is rendered from it (node scripts/render-chart.ts writes it)", () => {
    expect(read("deploy", "kubernetes.yaml").replace(/^#.*\n/gm, "")).toBe(renderChart())
  })

  test("its version is the program's", () => {
    expect(parse(read("chart", "Chart.yaml"))).toMatchObject({
      version: manifest.version,
      appVersion: manifest.version,
    })
  })
})

interface Workload {
  readonly selector: { readonly matchLabels: Record<string, string> }
  readonly template: {
    readonly metadata: { readonly labels: Record<string, string> }
    readonly spec: {
      readonly terminationGracePeriodSeconds: number
      readonly volumes: readonly { readonly name: string }[]
      readonly containers: readonly {
        readonly image: string
        readonly securityContext: object
        readonly env: readonly { readonly name: string }[]
        readonly volumeMounts: readonly { readonly name: string }[]
      }[]
    }
  }
}

describe("the compose file", () => {
  const { services, volumes } = parse(read("compose.yaml"), { merge: true }) as {
    services: Record<string, Record<string, unknown> & { profiles: string[] }>
    volumes: Record<string, unknown>
  }

  test("has a profile for each way to run it", () => {
    const profiles = new Set(Object.values(services).flatMap((service) => service.profiles))
    expect([...profiles].toSorted()).toEqual(["alone", "cluster", "gpu", "postgres"])
    const inCluster = Object.keys(services).filter((name) => services[name]?.profiles.includes("cluster"))
    expect(inCluster.toSorted()).toEqual([
      "clickhouse",
      "gateway-1",
      "gateway-2",
      "load-balancer",
      "postgres",
    ])
  })

  test("only names settings, volumes and services that exist", () => {
    const known = [...configKeys().flatMap(({ variable }) => variable ?? []), ...Object.keys(environmentOnly)]
    for (const [name, service] of Object.entries(services)) {
      const environment = Object.keys((service["environment"] as object | undefined) ?? {})
      for (const variable of environment.filter((one) => one.startsWith("UMPIRE_")))
        expect([name, known.includes(variable)]).toEqual([name, true])
      for (const volume of (service["volumes"] as string[] | undefined) ?? [])
        if (/^\w/.test(volume)) expect(Object.keys(volumes)).toContain(volume.split(":")[0])
      const needed = (service["depends_on"] as string[] | Record<string, unknown> | undefined) ?? []
      for (const other of Array.isArray(needed) ? needed : Object.keys(needed))
        expect(Object.keys(services)).toContain(other)
    }
  })

  test("its image is of this version, and gateways share no volume", () => {
    expect(services["umpire"]).toMatchObject({ image: `umpire:${manifest.version}`, read_only: true })
    expect(services["gateway-1"]?.["volumes"]).not.toEqual(services["gateway-2"]?.["volumes"])
  })
})
