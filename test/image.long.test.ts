/**
 * The image's steps on a root file system made by debootstrap, run in namespaces of its own: read-only root, another
 * user, a volume that outlives a kill. Where there is no root or no debootstrap there is nothing to run it with.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import manifest from "../package.json" with { type: "json" }
import { bootstrapKey } from "./server.ts"

const root = join(import.meta.dirname, "..")
const script = join(import.meta.dirname, "image.sh")
const canRun = process.getuid?.() === 0 && spawnSync("debootstrap", ["--version"]).status === 0

function run(command: string, args: readonly string[]): void {
  const { status, stderr } = spawnSync(command, args, { cwd: root, encoding: "utf8" })
  expect([status, stderr.slice(-2000)]).toEqual([0, expect.anything()])
}

describe.runIf(canRun)("the image", () => {
  // A folder that was built before can be given, because debootstrap takes minutes.
  const given = process.env["UMPIRE_TEST_IMAGE_DIR"]
  const folder = given ?? mkdtempSync(join(tmpdir(), "umpire-image-"))

  beforeAll(() => {
    if (given !== undefined) return
    run(process.execPath, [join(root, "scripts", "build-package.ts"), folder])
    run("bash", [script, "build", folder, join(folder, `${manifest.name}-${manifest.version}.tgz`)])
  })

  afterAll(() => {
    if (given === undefined) rmSync(folder, { recursive: true, force: true })
  })

  interface Container {
    readonly process: ChildProcess
    readonly url: string
    /** Of the server, as this machine numbers it. */
    readonly pid: number
  }

  async function start(): Promise<Container> {
    const child = spawn("bash", [script, "run", folder], {
      env: { PATH: process.env["PATH"] ?? "", UMPIRE_BOOTSTRAP_KEY: bootstrapKey },
      stdio: ["ignore", "pipe", "inherit"],
    })
    for await (const line of createInterface({ input: child.stdout })) {
      const url = /ready on (http\S+)/.exec(line)?.[1]
      if (url === undefined) continue
      // `image.sh` becomes `unshare`, whose only child is the server.
      const [pid] = readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, "utf8").trim().split(" ")
      return { process: child, url, pid: Number(pid) }
    }
    throw new Error("The container ended before it was ready")
  }

  const ask = async ({ url }: Container): Promise<number> => {
    const response = await fetch(`${url}/v1/decisions`, {
      method: "POST",
      headers: { authorization: `Bearer ${bootstrapKey}`, "content-type": "application/json" },
      body: JSON.stringify({
        model: "umpire-decide",
        input: "I want my money back.",
        questions: [{ type: "predicate", instructions: "Does the customer ask for a refund?" }],
      }),
    })
    return response.status
  }

  test("answers as an ordinary user on a read-only root, starts again after a kill, and drains on SIGTERM", async () => {
    const first = await start()
    expect(await ask(first)).toBe(200)
    expect(readFileSync(`/proc/${first.pid}/status`, "utf8")).toMatch(
      /^Uid:\s+10001\s+10001\s+10001\s+10001$/m,
    )
    expect(readFileSync(`/proc/${first.pid}/status`, "utf8")).toMatch(/^CapEff:\s+0+$/m)
    const mounts = readFileSync(`/proc/${first.pid}/mountinfo`, "utf8").split("\n")
    expect(mounts.find((line) => line.split(" ")[4] === "/")).toMatch(/ \/ ro/)
    process.kill(first.pid, "SIGKILL")
    await once(first.process, "exit")

    const second = await start()
    expect(await ask(second)).toBe(200)
    process.kill(second.pid, "SIGTERM")
    expect(await once(second.process, "exit")).toEqual([0, null])
  })
})
