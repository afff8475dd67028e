/** A server that npm runs ends when npm is told to end, although npm signals only the shell around it. */
import { spawn } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect, test } from "vitest"
import { prepareDirectory } from "./database.ts"

const root = join(import.meta.dirname, "..")
const ready = /is ready on (http:\/\/\S+)/

test.each([
  ["npm start", ["start", "--ignore-scripts"]],
  ["npx umpire", ["exec", "--offline", "--", "umpire", "serve"]],
])("SIGTERM to %s ends the server", async (_, args) => {
  const dataDirectory = mkdtempSync(join(tmpdir(), "umpire-npm-"))
  await prepareDirectory(join(dataDirectory, "database"))
  const npm = spawn("npm", args, {
    cwd: root,
    env: { PATH: process.env["PATH"], HOME: dataDirectory, UMPIRE_DATA_DIR: dataDirectory, UMPIRE_PORT: "0" },
    stdio: ["ignore", "pipe", "pipe"],
  })
  let said = ""
  for (const stream of [npm.stdout, npm.stderr])
    stream.setEncoding("utf8").on("data", (text) => (said += text))
  await expect.poll(() => said).toMatch(ready)
  const url = ready.exec(said)?.[1] ?? ""
  expect((await fetch(`${url}/healthz`)).status).toBe(200)
  npm.kill("SIGTERM")
  const answers = async (): Promise<boolean> =>
    await fetch(`${url}/healthz`).then(
      () => true,
      () => false,
    )
  await expect.poll(answers).toBe(false)
  // Its store is closed: another server can open it.
  await expect.poll(() => npm.stdout.readableEnded).toBe(true)
  rmSync(dataDirectory, { recursive: true, force: true })
})
