/** Debian's pgbouncer for tests, in transaction mode before a PostgreSQL. */
import { type ChildProcess, spawn } from "node:child_process"
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { connect } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as wait } from "node:timers/promises"
import { unpackDebian } from "./debian.ts"
import { freePort } from "./free-port.ts"

/** Its own libraries may not be on the machine. */
const packages = ["pgbouncer", "libc-ares2", "libevent-2.1-7"] as const
const unprivilegedId = 65_534
const pollMs = 50
const startMsMax = 120_000

export interface TestPooler {
  /** The given address, through it. */
  readonly url: string
  readonly process: ChildProcess
  stop(): Promise<void>
}

/** On the given port again, where one was killed. */
export async function startPgbouncer(url: string, givenPort?: number): Promise<TestPooler> {
  const files = unpackDebian(...packages)
  const folder = mkdtempSync(join(tmpdir(), "umpire-pgbouncer-"))
  chmodSync(folder, 0o755)
  const { hostname, port: serverPort, username } = new URL(url)
  const port = givenPort ?? (await freePort())
  const file = join(folder, "pgbouncer.ini")
  writeFileSync(
    file,
    [
      "[databases]",
      `* = host=${hostname} port=${serverPort} user=${username}`,
      "[pgbouncer]",
      "listen_addr = 127.0.0.1",
      `listen_port = ${port}`,
      "unix_socket_dir =",
      "auth_type = any",
      "pool_mode = transaction",
      "default_pool_size = 10",
      "max_client_conn = 500",
    ].join("\n"),
  )
  const libraries = join(
    files,
    "usr",
    "lib",
    process.arch === "arm64" ? "aarch64-linux-gnu" : "x86_64-linux-gnu",
  )
  const child = spawn(join(files, "usr", "sbin", "pgbouncer"), [file], {
    stdio: ["ignore", "ignore", "pipe"],
    env: { LD_LIBRARY_PATH: libraries },
    ...(process.getuid?.() === 0 ? { uid: unprivilegedId, gid: unprivilegedId } : {}),
  })
  let said = ""
  child.stderr.setEncoding("utf8").on("data", (text: string) => (said = (said + text).slice(-2_000)))
  await untilListening(
    port,
    () => child.exitCode,
    () => said,
  )
  const through = new URL(url)
  through.port = String(port)
  return {
    url: through.href,
    process: child,
    stop: async () => {
      if (child.exitCode === null && child.signalCode === null)
        await new Promise((resolve) => {
          child.once("exit", resolve)
          child.kill("SIGKILL")
        })
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

async function untilListening(
  port: number,
  exitCode: () => number | null,
  said: () => string,
): Promise<void> {
  const deadlineMs = performance.now() + startMsMax
  for (;;) {
    const listens = await new Promise<boolean>((resolve) => {
      const socket = connect(port, "127.0.0.1", () => resolve(true)).on("error", () => resolve(false))
      socket.on("connect", () => socket.destroy())
    })
    if (listens) return
    if (exitCode() !== null || performance.now() > deadlineMs)
      throw new Error(`pgbouncer did not start: ${said()}`)
    await wait(pollMs)
  }
}
