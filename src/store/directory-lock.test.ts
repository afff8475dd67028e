import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, readFileSync, rmSync, utimesSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { beforeEach, expect, onTestFinished, test, vi } from "vitest"
import { DirectoryLocked, lockDirectory } from "./directory-lock.ts"

const holder = fileURLToPath(new URL("../../test/programs/hold-lock.ts", import.meta.url))

let directory: string
let path: string

beforeEach(() => {
  const made = mkdtempSync(join(tmpdir(), "umpire-lock-"))
  directory = made
  path = join(directory, "umpire.lock")
  onTestFinished(() => rmSync(made, { recursive: true, force: true }))
})

/** Runs a program and answers its first line. */
async function start(
  command: string,
  args: readonly string[],
): Promise<{ child: ChildProcess; line: string }> {
  const child = spawn(command, args, { stdio: ["ignore", "pipe", "inherit"] })
  onTestFinished(() => void child.kill("SIGKILL"))
  const [chunk] = (await once(child.stdout, "data")) as [Buffer]
  return { child, line: chunk.toString().trim() }
}

const startHolder = async (): Promise<{ child: ChildProcess; line: string }> =>
  await start(process.execPath, [holder, directory])

test("another process is refused while the owner lives, with the owner's process number", async () => {
  const lock = await lockDirectory(directory)
  const { line } = await startHolder()
  expect(line).toMatch(new RegExp(`^DirectoryLocked: .*process ${process.pid} uses it; stop that process`))
  await lock.release()
  expect((await startHolder()).line).toMatch(/^\d+$/)
})

test("a second lock in the same process is refused, and possible after the release", async () => {
  const lock = await lockDirectory(directory)
  await expect(lockDirectory(directory)).rejects.toBeInstanceOf(DirectoryLocked)
  await lock.release()
  await (await lockDirectory(directory)).release()
})

test("the lock of a killed process is free at once", async () => {
  const { child } = await startHolder()
  await expect(lockDirectory(directory)).rejects.toBeInstanceOf(DirectoryLocked)
  child.kill("SIGKILL")
  await once(child, "exit")
  await (await lockDirectory(directory)).release()
})

test.runIf(process.platform === "linux")("a zombie does not keep its lock", async () => {
  // The shell becomes a program that never collects its child, as the first process of a container may be.
  const script = `"$0" "$1" "$2" & exec sleep 1000`
  const { line } = await start("sh", ["-c", script, process.execPath, holder, directory])
  const pid = Number(line)
  process.kill(pid, "SIGKILL")
  // The first thread is a zombie before the last one has ended.
  await expect.poll(async () => (await lockDirectory(directory)).release()).toBe(undefined)
  // It stays one: who would collect it sleeps. The lock may be free before the process has ended.
  await expect.poll(() => readFileSync(`/proc/${pid}/stat`, "utf8")).toMatch(/\) Z /)
  await (await lockDirectory(directory)).release()
})

test("of many attempts at once, one succeeds", async () => {
  const attempts = await Promise.allSettled(Array.from({ length: 20 }, () => lockDirectory(directory)))
  expect(attempts.filter(({ status }) => status === "fulfilled")).toHaveLength(1)
})

test("a lock file that says nothing, or nonsense, does not lock", async () => {
  for (const content of ["", "not json", JSON.stringify({ pid: process.pid })]) {
    writeFileSync(path, content)
    await (await lockDirectory(directory)).release()
  }
})

test.each([
  ["15 s ago", 15, true],
  ["26 s ago", 26, false],
])("version 0.1, last heard %s, keeps the directory: %s", async (_name, ageSeconds, kept) => {
  // The time stands still: a pause must not make it older.
  vi.useFakeTimers({ toFake: ["Date"] })
  onTestFinished(() => void vi.useRealTimers())
  writeFileSync(path, JSON.stringify({ pid: 7, started: "1", realm: "elsewhere", token: "theirs" }))
  const then = Date.now() / 1000 - ageSeconds
  utimesSync(path, then, then)
  const attempt = lockDirectory(directory).then((lock) => lock.release())
  if (kept) await expect(attempt).rejects.toThrow(/process 7 uses it.*version 0\.1/)
  else await attempt
})
