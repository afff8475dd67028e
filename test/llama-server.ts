/** A real `llama-server` of the version that node-llama-cpp brings, where one was built. */
import { type ChildProcess, spawn } from "node:child_process"
import { existsSync } from "node:fs"
import { type AddressInfo, createServer } from "node:net"
import { join } from "node:path"
import { setTimeout as delay } from "node:timers/promises"
import { readLock } from "../scripts/locked-packages.ts"

const version = readLock()["node_modules/node-llama-cpp"]?.version ?? ""

/** Where scripts/build-llama-server.ts puts it. */
export const builtLlamaServer = join(
  import.meta.dirname,
  "..",
  ".cache",
  `llama-server-${version}`,
  "llama-server",
)

/** The one that UMPIRE_LLAMA_SERVER names, or the built one; null where there is none. */
export function findLlamaServer(): string | null {
  const named = process.env["UMPIRE_LLAMA_SERVER"]
  if (named) return named
  return existsSync(builtLlamaServer) ? builtLlamaServer : null
}

export const howToBuild =
  "There is no llama-server: node scripts/build-llama-server.ts builds it, or name one in UMPIRE_LLAMA_SERVER"

export interface RunningLlamaServer {
  readonly url: string
  readonly port: number
  /** SIGKILL; resolves when it is gone. */
  kill(): Promise<void>
}

const startTimeoutMs = 600_000
const startIntervalMs = 100

/** `port` is a free one unless told. */
export async function startLlamaServer(
  program: string,
  flags: readonly string[],
  port?: number,
): Promise<RunningLlamaServer> {
  const own = port ?? (await freePort())
  const child = spawn(program, [...flags, "--host", "127.0.0.1", "--port", String(own)], {
    stdio: ["ignore", "ignore", "pipe"],
  })
  let said = ""
  child.stderr.setEncoding("utf8").on("data", (text: string) => (said = (said + text).slice(-4000)))
  const running = { url: `http://127.0.0.1:${own}`, port: own, kill: async () => await kill(child) }
  for (const startedMs = Date.now(); Date.now() - startedMs < startTimeoutMs; await delay(startIntervalMs)) {
    if (child.exitCode !== null || child.signalCode !== null) break
    const isHealthy = await fetch(`${running.url}/health`).then(
      ({ ok }) => ok,
      () => false,
    )
    if (isHealthy) return running
  }
  await running.kill()
  throw new Error(`llama-server did not start:\n${said}`)
}

async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const gone = new Promise((resolve) => child.once("exit", resolve))
  child.kill("SIGKILL")
  await gone
}

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}
