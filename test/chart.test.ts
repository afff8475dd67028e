/** The Helm chart and the compose file: what they render to, and that they agree with the program. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { Ajv } from "ajv"
import { describe, expect, test } from "vitest"
import { parse, parseAllDocuments } from "yaml"
import manifest from "../package.json" with { type: "json" }
import consoleManifest from "../console/package.json" with { type: "json" }
import { renderChart } from "../scripts/render-chart.ts"
import { configKeys, environmentOnly } from "../src/base/config.ts"
import { allOfChart } from "./chart-values.ts"

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

describe("the chart", () => {
  test("renders what is asked for, and nothing else", () => {
    expect(kindsOf()).toEqual(["PodDisruptionBudget", "Service", "Service", "StatefulSet"])
    expect(kindsOf({ disruptionBudget: { enabled: false } })).toEqual(["Service", "Service", "StatefulSet"])
    expect(kindsOf(allOfChart)).toEqual([
      "ConfigMap",
      "Deployment",
      "HorizontalPodAutoscaler",
      "Ingress",
      "NetworkPolicy",
      "NetworkPolicy",
      "PodDisruptionBudget",
      "PodDisruptionBudget",
      "Service",
      "Service",
      "Service",
      "ServiceMonitor",
      "StatefulSet",
    ])
  })

  test("every object has a version, a name and labels, and names are not used twice", () => {
    const objects = objectsOf(allOfChart)
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
    for (const { kind, spec } of objectsOf(allOfChart)) {
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

  test("metrics are on a port that the Service for clients does not have", () => {
    const ports = (name: string): unknown =>
      objectsOf(allOfChart).find(({ kind, metadata }) => kind === "Service" && metadata.name === name)?.spec[
        "ports"
      ]
    expect(ports("umpire")).toEqual([{ name: "http", port: 80, targetPort: "http" }])
    for (const name of ["umpire-gateways", "umpire-worker"])
      expect(ports(name)).toContainEqual({ name: "metrics", port: 9464, targetPort: "metrics" })
    const monitor = objectsOf(allOfChart).find(({ kind }) => kind === "ServiceMonitor")
    expect(monitor?.spec["endpoints"]).toEqual([
      {
        port: "metrics",
        path: "/metrics",
        interval: "30s",
        authorization: { credentials: { name: "readers", key: "metrics-token" } },
      },
    ])
  })

  test("what one object names another has: pods for selectors, ports for Services, probes, policies and monitors, a target to scale", () => {
    // That one has only data.
    const objects = objectsOf(allOfChart).filter(({ kind }) => kind !== "ConfigMap")
    const pods = objects.flatMap(({ spec }) =>
      "template" in spec ? [(spec as unknown as Workload).template] : [],
    )
    const podsOf = (selector: Record<string, string>): Workload["template"][] =>
      pods.filter(({ metadata }) => matches(metadata.labels, selector))
    const services = objects.filter(({ kind }) => kind === "Service") as unknown as Service[]
    for (const { metadata, spec } of services) {
      const [pod, ...others] = podsOf(spec.selector)
      expect([metadata.name, pod !== undefined, others]).toEqual([metadata.name, true, []])
      for (const { targetPort } of spec.ports) expect(portsOf(pod ? [pod] : [])).toContain(targetPort)
    }
    for (const { spec } of pods)
      for (const { ports, livenessProbe, readinessProbe, startupProbe } of spec.containers)
        for (const probe of [livenessProbe, readinessProbe, startupProbe])
          expect(ports.map(({ name }) => name)).toContain((probe.httpGet ?? probe.tcpSocket)?.port)
    for (const { kind, spec } of objects as unknown as Guard[]) {
      if (kind === "PodDisruptionBudget") expect(podsOf(spec.selector?.matchLabels ?? {})).toHaveLength(1)
      if (kind !== "NetworkPolicy") continue
      const guarded = podsOf(spec.podSelector?.matchLabels ?? {})
      expect(guarded).toHaveLength(1)
      for (const { ports } of spec.ingress ?? [])
        for (const { port } of ports) expect(portsOf(guarded)).toContain(port)
    }
    const monitor = objects.find(({ kind }) => kind === "ServiceMonitor")?.spec as unknown as Monitor
    const watched = services.filter(({ metadata }) => matches(metadata.labels, monitor.selector.matchLabels))
    const ofMetrics = watched.filter(({ spec }) =>
      spec.ports.some(({ name }) => name === monitor.endpoints[0]?.port),
    )
    expect(ofMetrics.map(({ metadata }) => metadata.name)).toEqual(["umpire-gateways", "umpire-worker"])
    const scaled = objects.find(({ kind }) => kind === "HorizontalPodAutoscaler")?.spec["scaleTargetRef"]
    const names = objects.map(({ apiVersion, kind, metadata: { name } }) => ({ apiVersion, kind, name }))
    expect(names).toContainEqual(scaled)
    const ingress = JSON.stringify(objects.find(({ kind }) => kind === "Ingress")?.spec["rules"])
    expect(ingress).toContain('"service":{"name":"umpire","port":{"name":"http"}}')
  })

  test("gateways use its worker, unless the configuration names models", () => {
    const workers = [
      { url: "http://umpire-worker:9000", dialect: "umpire", key: { env: "UMPIRE_WORKER_KEY" } },
    ]
    const worker = { enabled: true, port: 9000 }
    expect(configuration({})).toBeUndefined()
    expect(configuration({ worker })).toEqual({ models: [{ sku: "umpire-decide", workers }] })
    expect(configuration({ worker, config: { log: { level: "debug" } } })).toEqual({
      log: { level: "debug" },
      models: [{ sku: "umpire-decide", workers }],
    })
    const config = { models: [{ sku: "a", context_tokens_max: 10 }] }
    expect(configuration({ worker, config })).toEqual(config)
  })

  test("what Kubernetes refuses to change of a StatefulSet stays, or docs/deploy.md says how to upgrade", () => {
    const { replicas: _, template: __, ...fixed } = gateway({}) as Record<string, unknown>
    const labels = { "app.kubernetes.io/name": "umpire", "app.kubernetes.io/instance": "umpire" }
    expect(fixed).toEqual({
      serviceName: "umpire-gateways",
      podManagementPolicy: "Parallel",
      selector: { matchLabels: { ...labels, "app.kubernetes.io/component": "gateway" } },
      volumeClaimTemplates: [
        {
          metadata: { name: "journal" },
          spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "10Gi" } } },
        },
      ],
    })
  })

  test("another configuration makes other pods", () => {
    expect(checksum({ a: 1 })).toMatch(/^[0-9a-f]{64}$/)
    expect(checksum({ a: 1 })).not.toBe(checksum({ a: 2 }))
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

const checksum = (config: object): unknown =>
  (gateway({ config }) as Workload).template.metadata.annotations["checksum/config"]

/** What the ConfigMap holds. */
function configuration(values: object): unknown {
  const map = objectsOf(values).find(({ kind }) => kind === "ConfigMap") as ConfigMap | undefined
  return map && parse(map.data["umpire.yaml"])
}

/** The names of the ports of what runs there. */
const portsOf = (pods: readonly Workload["template"][]): string[] =>
  pods.flatMap(({ spec }) => spec.containers.flatMap(({ ports }) => ports.map(({ name }) => name)))

const matches = (labels: Record<string, string>, selector: Record<string, string>): boolean =>
  Object.entries(selector).every(([name, value]) => labels[name] === value)

interface Service extends Omit<KubernetesObject, "spec"> {
  readonly spec: {
    readonly selector: Record<string, string>
    readonly ports: readonly { readonly name: string; readonly targetPort: string }[]
  }
}

/** A budget of disruptions, or a policy of the network. */
interface Guard {
  readonly kind: string
  readonly spec: {
    readonly selector?: Workload["selector"]
    readonly podSelector?: Workload["selector"]
    readonly ingress?: readonly { readonly ports: readonly { readonly port: string }[] }[]
  }
}

interface Monitor {
  readonly selector: Workload["selector"]
  readonly endpoints: readonly { readonly port: string }[]
}

interface Probe {
  readonly httpGet?: { readonly port: string }
  readonly tcpSocket?: { readonly port: string }
}

interface ConfigMap extends KubernetesObject {
  readonly data: { readonly "umpire.yaml": string }
}

interface Workload {
  readonly selector: { readonly matchLabels: Record<string, string> }
  readonly template: {
    readonly metadata: {
      readonly labels: Record<string, string>
      readonly annotations: Record<string, string>
    }
    readonly spec: {
      readonly terminationGracePeriodSeconds: number
      readonly volumes: readonly { readonly name: string }[]
      readonly containers: readonly {
        readonly image: string
        readonly securityContext: object
        readonly ports: readonly { readonly name: string }[]
        readonly livenessProbe: Probe
        readonly readinessProbe: Probe
        readonly startupProbe: Probe
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

  test("its image is built on the Node of clones, by a digest where one is given, and installs what the lock names", () => {
    const bases = [...read("Dockerfile").matchAll(/^FROM (\S+)/gm)].map(([, base]) => base)
    const base = `node:${consoleManifest.dependencies.node}-bookworm-slim\${NODE_DIGEST}`
    expect(bases).toEqual([base, base])
    expect(services["umpire"]?.["build"]).toMatchObject({ args: { NODE_DIGEST: "${NODE_DIGEST:-}" } })
    const steps = read("deploy", "image.sh")
    expect(steps).toContain("npm ci ")
    expect(steps).not.toMatch(/npm (?:install|exec)|npx/)
  })

  test("the load balancer asks again for the name that both gateways have", () => {
    for (const name of ["gateway-1", "gateway-2"])
      expect(services[name]?.["networks"]).toEqual({ default: { aliases: ["gateways"] } })
    expect(read("deploy", "nginx.conf")).toContain("set $gateways http://gateways:8484;")
  })

  test("its image is of this version, and gateways share no volume", () => {
    expect(services["umpire"]).toMatchObject({ image: `umpire:${manifest.version}`, read_only: true })
    expect(services["gateway-1"]?.["volumes"]).not.toEqual(services["gateway-2"]?.["volumes"])
  })
})
