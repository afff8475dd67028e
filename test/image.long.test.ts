/**
 * The image's steps on a root file system made by debootstrap, run in namespaces of its own: read-only root, another
 * user, a volume that outlives a kill. Only root can make such a file system.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import { cpSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { unpackDebian } from "./debian.ts"
import { installMs } from "./run-folder.ts"
import { bootstrapKey } from "./server.ts"

const root = join(import.meta.dirname, "..")
const script = join(import.meta.dirname, "image.sh")
/** As docs/deploy.md says what is enough for decisions. */
const memory = { "umpire-decide": "768M", "umpire-decide-small": "512M" } as const

/** What `COPY . .` takes of a fresh clone. */
function copyClone(target: string): void {
  const flags = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"]
  const { stdout } = spawnSync("git", flags, { cwd: root, encoding: "utf8", maxBuffer: 1 << 24 })
  for (const file of stdout.split("\0").filter((name) => name !== "" && !/^(?:bench|test)\//.test(name)))
    cpSync(join(root, file), join(target, file))
}

describe.runIf(process.getuid?.() === 0)("the image", () => {
  // A folder that was built before can be given, because debootstrap takes minutes.
  const given = process.env["UMPIRE_TEST_IMAGE_DIR"]
  const folder = given ?? mkdtempSync(join(tmpdir(), "umpire-image-"))

  beforeAll(() => {
    if (given !== undefined) return
    copyClone(join(folder, "clone"))
    const unpacked = join(unpackDebian("debootstrap"), "usr")
    const { status, stderr } = spawnSync("bash", [script, "build", folder], {
      encoding: "utf8",
      env: {
        ...process.env,
        DEBOOTSTRAP: join(unpacked, "sbin", "debootstrap"),
        DEBOOTSTRAP_DIR: join(unpacked, "share", "debootstrap"),
      },
    })
    expect([status, stderr.slice(-2000)]).toEqual([0, expect.anything()])
  }, installMs)

  afterAll(() => {
    if (given === undefined) rmSync(folder, { recursive: true, force: true })
  })

  interface Container {
    readonly process: ChildProcess
    readonly url: string
    /** Of the server, as this machine numbers it. */
    readonly pid: number
  }

  async function start(model: keyof typeof memory = "umpire-decide"): Promise<Container> {
    const child = spawn("bash", [script, "run", folder, memory[model]], {
      env: {
        PATH: process.env["PATH"] ?? "",
        UMPIRE_BOOTSTRAP_KEY: bootstrapKey,
        UMPIRE_ENGINE_DECISION_MODEL: model,
      },
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

  test("with the small model 512 MiB are enough, from the first start on", async () => {
    rmSync(join(folder, "data"), { recursive: true })
    const small = await start("umpire-decide-small")
    expect(await ask(small)).toBe(200)
    process.kill(small.pid, "SIGTERM")
    expect(await once(small.process, "exit")).toEqual([0, null])
  })
})
