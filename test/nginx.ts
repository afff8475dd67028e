/** Debian's nginx for tests, with deploy/nginx.conf before gateways of this machine, whose name a server of ours resolves. */
import { type ChildProcess, spawn } from "node:child_process"
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as wait } from "node:timers/promises"
import { unpackDebian } from "./debian.ts"
import { type TestNameServer, startNameServer } from "./dns.ts"
import { freePort } from "./free-port.ts"

const unprivilegedId = 65_534
const pollMs = 50
const startMsMax = 120_000

export interface TestNginx {
  readonly url: string
  readonly process: ChildProcess
  /** From now on the gateways are at these addresses. */
  moveTo(addresses: readonly string[]): void
  stop(): Promise<void>
}

/** Each is at an address of its own, on the same port, as containers are. */
interface Gateways {
  readonly port: number
  readonly addresses: readonly string[]
}

interface Places {
  readonly listening: number
  readonly gatewayPort: number
  readonly resolverPort: number
  readonly folder: string
}

function adapted({ listening, gatewayPort, resolverPort, folder }: Places): string {
  const text = readFileSync(join(import.meta.dirname, "..", "deploy", "nginx.conf"), "utf8")
  return text
    .replace("worker_processes auto;", `worker_processes 2;\npid ${folder}/nginx.pid;\ndaemon off;`)
    .replace("worker_rlimit_nofile 65536;\n", "")
    .replace("worker_connections 16384;", "worker_connections 512;")
    .replace(
      "resolver 127.0.0.11 valid=5s",
      `${temporary(folder)}  access_log off;\n  resolver 127.0.0.1:${resolverPort} valid=1s`,
    )
    .replace("gateways:8484", `gateways:${gatewayPort}`)
    .replace("listen 8484", `listen 127.0.0.1:${listening}`)
}

/** It makes them all, whatever is used. */
const temporary = (folder: string): string =>
  ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
    .map((name) => `  ${name}_temp_path ${folder}/${name};\n`)
    .join("")

export async function startNginx({ port: gatewayPort, addresses }: Gateways): Promise<TestNginx> {
  const folder = mkdtempSync(join(tmpdir(), "umpire-nginx-"))
  chmodSync(folder, 0o777)
  mkdirSync(join(folder, "logs"))
  chmodSync(join(folder, "logs"), 0o777)
  const port = await freePort()
  const names = await startNameServer()
  names.answer(addresses)
  const file = join(folder, "nginx.conf")
  writeFileSync(file, adapted({ listening: port, gatewayPort, resolverPort: names.port, folder }))
  const program = join(unpackDebian("nginx"), "usr", "sbin", "nginx")
  const child = spawn(program, ["-p", folder, "-c", file, "-e", "stderr"], {
    stdio: ["ignore", "ignore", "inherit"],
    ...(process.getuid?.() === 0 ? { uid: unprivilegedId, gid: unprivilegedId } : {}),
  })
  const url = `http://127.0.0.1:${port}`
  const deadlineMs = performance.now() + startMsMax
  while (!(await fetch(`${url}/metrics`).catch(() => null))) {
    if (child.exitCode !== null || performance.now() > deadlineMs) throw new Error("nginx did not start")
    await wait(pollMs)
  }
  return {
    url,
    process: child,
    moveTo: (moved) => names.answer(moved),
    stop: async () => await stop(child, names),
  }
}

/** With its workers, which outlive one that is killed. */
async function stop(child: ChildProcess, names: TestNameServer): Promise<void> {
  if (child.exitCode === null)
    await new Promise((resolve) => {
      child.once("exit", resolve)
      child.kill("SIGTERM")
    })
  await names.close()
}
