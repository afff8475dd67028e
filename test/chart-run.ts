/** Starts what the chart renders as processes: a gateway and a worker with their own arguments and variables. */
import { randomBytes } from "node:crypto"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect, onTestFinished } from "vitest"
import { parseAllDocuments } from "yaml"
import { freePort } from "./free-port.ts"
import { emptyDatabase } from "./postgres.ts"
import { type TestServer, bootstrapKey, startServer } from "./server.ts"

interface Rendered {
  readonly kind: string
  readonly data?: Readonly<Record<string, string>>
  readonly spec: {
    readonly template: {
      readonly spec: {
        readonly containers: readonly {
          readonly args: readonly string[]
          readonly env: readonly {
            readonly name: string
            readonly value?: string
            readonly valueFrom?: { readonly secretKeyRef: { readonly key: string } }
          }[]
        }[]
      }
    }
  }
}

/** In a test: what it starts ends with it. */
export async function runChart(render: (values: object) => string): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "umpire-chart-"))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const fresh = await emptyDatabase()
  onTestFinished(async () => await fresh.drop())
  const [port, workerPort, metricsPort] = [await freePort(), await freePort(), await freePort()]
  const secrets: Readonly<Record<string, string>> = {
    "database-url": fresh.url,
    "worker-key": "of the worker",
    "metrics-token": "of the readers",
    "content-keys": randomBytes(32).toString("base64"),
    key: bootstrapKey,
  }
  const documents = parseAllDocuments(
    render({
      gateway: { port },
      worker: { enabled: true, port: workerPort },
      metrics: { port: metricsPort, secret: "readers" },
      bootstrap: { secret: "first" },
      content: { secret: "content" },
    }),
  ).map((document) => document.toJS() as Rendered)
  const found = (kind: string): Rendered => {
    const object = documents.find((one) => one.kind === kind)
    if (!object) throw new Error(`no ${kind} is rendered`)
    return object
  }
  const config = join(folder, "umpire.yaml")
  // The name of a Service.
  const written = found("ConfigMap").data?.["umpire.yaml"] ?? ""
  writeFileSync(config, written.replace("http://umpire-worker:", "http://127.0.0.1:"))
  const start = async (kind: string, more: Record<string, string> = {}): Promise<TestServer> => {
    const [container] = found(kind).spec.template.spec.containers
    const env = Object.fromEntries(
      (container?.env ?? []).map(({ name, value, valueFrom }) => [
        name,
        value ?? secrets[valueFrom?.secretKeyRef.key ?? ""] ?? "",
      ]),
    )
    const server = await startServer({
      dataDirectory: join(folder, kind),
      bootstrap: false,
      args: (container?.args ?? []).map((word) => word.replace("0.0.0.0", "127.0.0.1")),
      // Of a pod: it has an address of its own, and Kubernetes tells it of Services.
      env: {
        ...env,
        UMPIRE_CONFIG: config,
        UMPIRE_HOST: "127.0.0.1",
        UMPIRE_METRICS_HOST: "127.0.0.1",
        ...more,
      },
    })
    onTestFinished(async () => void (await server.stop()))
    return server
  }
  const worker = await start("Deployment", {
    UMPIRE_PORT: "tcp://10.0.0.1:80",
    UMPIRE_METRICS_PORT: String(await freePort()),
  })
  expect(worker.url).toBe(`http://127.0.0.1:${workerPort}`)
  const gateway = await start("StatefulSet")
  expect(gateway.url).toBe(`http://127.0.0.1:${port}`)
  const decided = await gateway.post("/v1/decisions", {
    model: "umpire-decide",
    input: "The parcel never came.",
    questions: [{ type: "predicate", instructions: "Is something missing?" }],
  })
  expect(decided.status).toBe(200)
  const authorization = `Bearer ${bootstrapKey}`
  const listed = await fetch(`${gateway.url}/v1/organizations`, { headers: { authorization } })
  const { data } = (await listed.json()) as { data: { id: string }[] }
  // Only what can be encrypted is kept.
  const kept = await fetch(`${gateway.url}/v1/organizations/${data[0]?.id}/content_settings`, {
    method: "PUT",
    headers: { authorization, "content-type": "application/json" },
    body: JSON.stringify({ keep: "evidence_and_answers" }),
  })
  expect(kept.status).toBe(200)
  expect((await fetch(`${gateway.url}/metrics`)).status).toBe(404)
  const metrics = async (authorization?: string): Promise<Response> =>
    await fetch(`http://127.0.0.1:${metricsPort}/metrics`, {
      headers: authorization ? { authorization } : {},
    })
  expect((await metrics()).status).toBe(401)
  const text = await (await metrics("Bearer of the readers")).text()
  // At the worker, and nowhere else.
  expect(text).toMatch(
    /umpire_worker_attempts_total\{[^}]*model="umpire-decide"[^}]*result="success"[^}]*\} 1/,
  )
}
