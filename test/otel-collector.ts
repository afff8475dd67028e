/** The OpenTelemetry collector itself for tests, built with its own builder: takes OTLP over HTTP and writes what it got to its log. */
import { type ChildProcess, spawn } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { freePort } from "./free-port.ts"
import { go, goProgram, madeOnce } from "./go-tools.ts"

const version = "0.115.0"
const providerVersion = "1.21.0"
const module = "go.opentelemetry.io/collector"

export interface RealCollector {
  readonly url: string
  /** Every span that it took, field by field. */
  log(): string
  stop(): Promise<void>
}

function built(): string {
  const builder = goProgram(`${module}/cmd/builder`, `v${version}`)
  const make = (folder: string): void => {
    const manifest = {
      dist: { name: "otelcol", output_path: folder, version },
      receivers: [{ gomod: `${module}/receiver/otlpreceiver v${version}` }],
      exporters: [{ gomod: `${module}/exporter/debugexporter v${version}` }],
      // It does not start without that of variables.
      providers: ["fileprovider", "envprovider"].map((name) => ({
        gomod: `${module}/confmap/provider/${name} v${providerVersion}`,
      })),
    }
    const file = join(folder, "builder.yaml")
    // JSON is YAML.
    writeFileSync(file, JSON.stringify(manifest))
    go({ program: builder, args: ["--config", file] })
  }
  return join(madeOnce(`otelcol@${version}`, make), "otelcol")
}

export async function startRealCollector(): Promise<RealCollector> {
  const program = built()
  const folder = mkdtempSync(join(tmpdir(), "umpire-otelcol-"))
  const port = await freePort()
  const config = {
    receivers: { otlp: { protocols: { http: { endpoint: `127.0.0.1:${port}` } } } },
    exporters: { debug: { verbosity: "detailed" } },
    service: {
      pipelines: { traces: { receivers: ["otlp"], exporters: ["debug"] } },
      telemetry: { metrics: { level: "none" } },
    },
  }
  const file = join(folder, "collector.yaml")
  writeFileSync(file, JSON.stringify(config))
  const child = spawn(program, ["--config", file], { stdio: ["ignore", "ignore", "pipe"] })
  let log = ""
  child.stderr.setEncoding("utf8").on("data", (text: string) => (log += text))
  await ready(child, () => log)
  return {
    url: `http://127.0.0.1:${port}`,
    log: () => log,
    stop: async () => {
      await new Promise((resolve) => {
        child.once("exit", resolve)
        child.kill("SIGTERM")
      })
      rmSync(folder, { recursive: true })
    },
  }
}

async function ready(child: ChildProcess, log: () => string): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    child.stderr?.on("data", () => log().includes("Everything is ready") && resolve())
    child.once("exit", () => reject(new Error(`The collector did not start: ${log()}`)))
  })
}
