/** Runs the real product in a process of its own, as a user would start it, on a free port and an empty directory. */
import { type ChildProcess, spawn } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

import { prepareDirectory } from "./database.ts"

export const bootstrapKey = "ump_00000000000000000000test_0123456789abcdefghjkmnpqrstvwxyz"

const startTimeoutMs = 110_000
const stopTimeoutMs = 110_000
const command = join(import.meta.dirname, "..", "bin", "umpire.js")

export interface TestServer {
  readonly url: string
  readonly key: string
  readonly dataDirectory: string
  readonly process: ChildProcess
  /** Everything written so far. */
  stdout(): string
  stderr(): string
  /** Sends JSON with the key. */
  post(path: string, body: unknown, headers?: Record<string, string>): Promise<Response>
  /** SIGTERM, and the exit status. */
  stop(): Promise<number | null>
}

interface TestServerOptions {
  readonly env?: Record<string, string>
  /** Kept when the server stops, so that another can start on it. */
  readonly dataDirectory?: string
  /** False starts without a bootstrap key, as on a laptop. */
  readonly bootstrap?: boolean
  /** The command to run instead of the one in this folder. */
  readonly command?: string
  /** Its arguments; it serves unless told. */
  readonly args?: readonly string[]
}

export async function startServer(options: TestServerOptions = {}): Promise<TestServer> {
  const dataDirectory = options.dataDirectory ?? mkdtempSync(join(tmpdir(), "umpire-test-"))
  const embedded = options.env?.["UMPIRE_DATABASE_URL"] === undefined
  if (embedded && options.dataDirectory === undefined) await prepareDirectory(join(dataDirectory, "database"))
  const child = spawn(process.execPath, [options.command ?? command, ...(options.args ?? ["serve"])], {
    env: {
      ...withoutUmpire(process.env),
      UMPIRE_DATA_DIR: dataDirectory,
      UMPIRE_PORT: "0",
      // Two threads that wait for one another crawl on a machine that runs other tests too.
      UMPIRE_ENGINE_THREADS: "1",
      // Most tests need an answer, not the best one.
      UMPIRE_ENGINE_DECISION_MODEL: "umpire-decide-small",
      // Many a worker is in the test's own process, which may stand still for longer than a health check waits.
      UMPIRE_ROUTING_HEALTH_TIMEOUT_MS: "600000",
      ...(options.bootstrap === false ? {} : { UMPIRE_BOOTSTRAP_KEY: bootstrapKey }),
      ...options.env,
    },
    stdio: ["ignore", "pipe", "pipe"],
  })
  const output = { stdout: "", stderr: "" }
  child.stdout.setEncoding("utf8").on("data", (text: string) => (output.stdout += text))
  child.stderr.setEncoding("utf8").on("data", (text: string) => (output.stderr += text))
  const url = await readyUrl(child, output)
  return {
    url,
    key: bootstrapKey,
    dataDirectory,
    process: child,
    stdout: () => output.stdout,
    stderr: () => output.stderr,
    post: async (path, body, headers = {}) =>
      await fetch(url + path, {
        method: "POST",
        headers: { authorization: `Bearer ${bootstrapKey}`, "content-type": "application/json", ...headers },
        body: typeof body === "string" || body instanceof Uint8Array ? body : JSON.stringify(body),
      }),
    stop: async () => {
      const status = await stop(child)
      if (options.dataDirectory === undefined) rmSync(dataDirectory, { recursive: true, force: true })
      return status
    },
  }
}

/** A developer's own settings must not reach a server under test. */
function withoutUmpire(environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(environment).filter(([name]) => !name.startsWith("UMPIRE_")))
}

async function readyUrl(child: ChildProcess, output: { stdout: string; stderr: string }): Promise<string> {
  return await new Promise((resolve, reject) => {
    const timer = setTimeout(() => fail("it was not ready in time"), startTimeoutMs)
    const fail = (why: string): void => {
      child.kill("SIGKILL")
      reject(new Error(`The server did not start: ${why}\n${output.stdout}\n${output.stderr}`))
    }
    const look = (): void => {
      const url = /ready on (http\S+)/.exec(output.stdout)?.[1]
      if (!url) return
      clearTimeout(timer)
      child.stdout?.off("data", look)
      resolve(url)
    }
    child.stdout?.on("data", look)
    child.once("exit", (code) => fail(`it ended with ${code}`))
  })
}

async function stop(child: ChildProcess): Promise<number | null> {
  if (child.exitCode !== null || child.signalCode !== null) return child.exitCode
  return await new Promise((resolve) => {
    const timer = setTimeout(() => child.kill("SIGKILL"), stopTimeoutMs)
    child.once("exit", (code) => {
      clearTimeout(timer)
      resolve(code)
    })
    child.kill("SIGTERM")
  })
}
