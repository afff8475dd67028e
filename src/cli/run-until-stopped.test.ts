import { spawn } from "node:child_process"
import { once } from "node:events"
import { join } from "node:path"
import { text } from "node:stream/consumers"
import { expect, test } from "vitest"

const program = join(import.meta.dirname, "../../test/programs/fail-unhandled.ts")

async function run(...args: string[]) {
  const child = spawn(process.execPath, [program, ...args], { stdio: ["ignore", "pipe", "pipe"] })
  const [[code], stdout, stderr] = await Promise.all([
    once(child, "exit"),
    text(child.stdout),
    text(child.stderr),
  ])
  const lines = stderr.trim().split("\n")
  const [line = "{}"] = lines
  return { code, stdout, lines, logged: JSON.parse(line) as Record<string, unknown> }
}

test.each([
  ["rejection", "unhandledRejection"],
  ["exception", "uncaughtException"],
])(
  "an unhandled %s is logged once with its stack, and what runs is closed before the exit",
  async (kind, origin) => {
    const { code, stdout, lines, logged } = await run(kind)
    expect({ code, stdout, lines: lines.length }).toEqual({ code: 1, stdout: "closed\n", lines: 1 })
    expect(logged).toMatchObject({
      level: "fatal",
      origin,
      err: { message: expect.stringContaining("on purpose"), stack: expect.stringMatching(/\n +at /) },
    })
  },
)

test("an unhandled failure while the server starts ends the process, logged", async () => {
  const { code, stdout, logged } = await run("rejection", "start")
  expect({ code, stdout, level: logged["level"] }).toEqual({ code: 1, stdout: "", level: "fatal" })
})

test("a server that does not close when it is told to stop ends after its time, logged with what is still open", async () => {
  const { code, stdout, lines } = await run("stuck")
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" })
  expect(JSON.parse(lines.at(-1) ?? "{}")).toMatchObject({
    level: "error",
    open: { Timeout: expect.any(Number) },
  })
})

test("a server that has closed ends although something still runs", async () => {
  const { code, stdout, lines } = await run("lingering")
  expect({ code, stdout }).toEqual({ code: 0, stdout: "closed\n" })
  expect(JSON.parse(lines.at(-1) ?? "{}")).toMatchObject({
    level: "error",
    open: { Timeout: expect.any(Number) },
  })
})
