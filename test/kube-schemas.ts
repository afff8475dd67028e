/** Schemas of Kubernetes' objects for kubeconform, made of what Kubernetes and the Prometheus operator publish in their Go modules. */
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { parse } from "yaml"
import { goModule, madeOnce } from "./go-tools.ts"

export const kubernetesVersion = "1.36.3"
const operatorVersion = "0.85.0"
const serviceMonitor = "example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml"

/** As kubeconform fills it in; the group of what is in none is its version. */
export const schemaPattern = "{{ .Group }}_{{ .ResourceAPIVersion }}_{{ .ResourceKind }}.json"

interface Kind {
  readonly group: string
  readonly version: string
  readonly kind: string
}

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>
  readonly "x-kubernetes-group-version-kind"?: readonly Kind[]
}

/** OpenAPI says only that these are text. */
const looser: Readonly<Record<string, object>> = {
  "io.k8s.apimachinery.pkg.util.intstr.IntOrString": { type: ["string", "integer"] },
  "io.k8s.apimachinery.pkg.api.resource.Quantity": { type: ["string", "number"] },
}

/** The folder with one file for each kind. */
export const kubernetesSchemas = (): string =>
  madeOnce(`kubernetes-schemas@${kubernetesVersion}-${operatorVersion}`, (folder) => {
    const write = ({ group, version, kind }: Kind, schema: object): void =>
      writeFileSync(
        join(folder, `${group || version}_${version}_${kind.toLowerCase()}.json`),
        JSON.stringify(schema),
      )
    const swagger = join(
      goModule("k8s.io/kubernetes", `v${kubernetesVersion}`),
      "api/openapi-spec/swagger.json",
    )
    const { definitions } = JSON.parse(readFileSync(swagger, "utf8")) as {
      definitions: Record<string, Schema>
    }
    const closed = closedBelow({ ...definitions, ...looser }) as Record<string, Schema>
    for (const [name, schema] of Object.entries(definitions))
      for (const kind of schema["x-kubernetes-group-version-kind"] ?? [])
        write(kind, { $ref: `#/definitions/${name}`, definitions: reachable(closed, name) })
    const module = goModule("github.com/prometheus-operator/prometheus-operator", `v${operatorVersion}`)
    const { spec } = parse(readFileSync(join(module, serviceMonitor), "utf8")) as {
      spec: {
        group: string
        names: { kind: string }
        versions: { name: string; schema: { openAPIV3Schema: object } }[]
      }
    }
    for (const { name, schema } of spec.versions)
      write(
        { group: spec.group, version: name, kind: spec.names.kind },
        closedBelow(schema.openAPIV3Schema) as object,
      )
  })

/** A field that is not named is a mistake, as the API server says when it is asked to be strict. */
function closedBelow(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(closedBelow)
  if (typeof node !== "object" || node === null) return node
  const below = Object.fromEntries(Object.entries(node).map(([name, value]) => [name, closedBelow(value)]))
  const isObject = "properties" in node && (node as { type?: unknown }).type === "object"
  return isObject && !("additionalProperties" in node) ? { ...below, additionalProperties: false } : below
}

function reachable(definitions: Readonly<Record<string, Schema>>, start: string): Record<string, Schema> {
  const found: Record<string, Schema> = {}
  const waiting = [start]
  for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
    const schema = definitions[name]
    if (!schema || found[name]) continue
    found[name] = schema
    const references = JSON.stringify(schema).matchAll(/"#\/definitions\/([^"]+)"/g)
    waiting.push(...[...references].map(([, target = ""]) => target))
  }
  return found
}
