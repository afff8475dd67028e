/** Debian's Prometheus for tests: a server that scrapes ours, and promtool. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { unpackDebian } from "./debian.ts"
import { freePort } from "./free-port.ts"

const program = (name: string): string => join(unpackDebian("prometheus"), "usr", "bin", name)

/** What promtool says and its exit status. */
export function promtool(args: readonly string[], input?: string): { status: number | null; said: string } {
  const { status, stdout, stderr } = spawnSync(program("promtool"), args, { input, encoding: "utf8" })
  return { status, said: `${stdout}${stderr}` }
}

export interface TestPrometheus {
  /** The samples of an expression at a time, by default now; throws when it is not one. */
  query(expression: string, atSeconds?: number): Promise<readonly unknown[]>
  stop(): Promise<void>
}

interface Target {
  readonly url: string
  readonly job: string
  /** Sent as a bearer value. */
  readonly token?: string
}

export async function startPrometheus(targets: readonly Target[]): Promise<TestPrometheus> {
  const folder = mkdtempSync(join(tmpdir(), "umpire-prometheus-"))
  const config = {
    global: { scrape_interval: "1s", scrape_timeout: "1s" },
    scrape_configs: targets.map(({ url, job, token }) => ({
      job_name: job,
      static_configs: [{ targets: [new URL(url).host] }],
      ...(token === undefined ? {} : { authorization: { credentials: token } }),
    })),
  }
  // JSON is YAML.
  writeFileSync(join(folder, "prometheus.yaml"), JSON.stringify(config))
  // Prometheus does not tell which port it was given for 0.
  const port = await freePort()
  const child = spawn(
    program("prometheus"),
    [
      `--config.file=${join(folder, "prometheus.yaml")}`,
      `--storage.tsdb.path=${join(folder, "data")}`,
      `--web.listen-address=127.0.0.1:${port}`,
      "--log.level=error",
    ],
    { stdio: ["ignore", "ignore", "inherit"] },
  )
  return {
    query: async (expression, atSeconds) => await query(port, expression, atSeconds),
    stop: async () => {
      await ended(child)
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Empty while it starts. */
async function query(port: number, expression: string, atSeconds?: number): Promise<readonly unknown[]> {
  const body = new URLSearchParams({ query: expression })
  if (atSeconds !== undefined) body.set("time", String(atSeconds))
  const response = await fetch(`http://127.0.0.1:${port}/api/v1/query`, { method: "POST", body }).catch(
    () => null,
  )
  if (!response || response.status === 503) return []
  const said = (await response.json()) as { error?: string; data?: { result: readonly unknown[] } }
  if (!said.data) throw new Error(`Prometheus refuses ${expression}: ${said.error}`)
  return said.data.result
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return
  await new Promise((resolve) => {
    child.once("exit", resolve)
    child.kill("SIGKILL")
  })
}
