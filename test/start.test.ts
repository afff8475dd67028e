/** From an empty directory to an answer, and through stops and restarts, as on somebody's laptop. */
import { type SpawnSyncReturns, spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import { existsSync, mkdtempSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { type AddressInfo, createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest"
import { main } from "../src/main.ts"
import { prepareDirectory } from "./database.ts"
import { type TestServer, bootstrapKey, startServer } from "./server.ts"

const umpire = join(import.meta.dirname, "..", "bin", "umpire.js")
const freshDirectory = (): string => mkdtempSync(join(tmpdir(), "umpire-start-"))

const run = (
  args: readonly string[],
  env: Record<string, string>,
  input?: string,
): SpawnSyncReturns<string> =>
  spawnSync(process.execPath, [umpire, ...args], {
    encoding: "utf8",
    env: { PATH: process.env["PATH"] ?? "", ...env },
    ...(input === undefined ? {} : { input }),
  })

describe("the first start", () => {
  test("puts a key into a file of its owner alone where no terminal is attached, and the curl with it answers", async () => {
    const dataDirectory = freshDirectory()
    const first = await startServer({ dataDirectory, bootstrap: false })
    expect(first.stdout() + first.stderr()).not.toContain("ump_")
    const file = join(dataDirectory, "first-start.txt")
    expect(statSync(file).mode & 0o777).toBe(0o600)
    const welcome = readFileSync(file, "utf8")
    const key = /^ {2}(ump_\S+)$/m.exec(welcome)?.[1] ?? ""
    const curl = welcome.slice(welcome.indexOf("curl "))
    const { stdout } = spawnSync("bash", ["-c", curl], { encoding: "utf8" })
    const { answers } = JSON.parse(stdout) as { answers: { name: string; probability?: number }[] }
    expect(answers.map(({ name }) => name)).toEqual(["refund", "topic"])
    expect(answers[0]?.probability).toBeGreaterThan(0.5)
    expect(await first.stop()).toBe(0)

    const second = await startServer({ dataDirectory, bootstrap: false })
    expect(second.stdout()).not.toContain("ump_")
    expect(second.stdout()).toContain("ready on")
    const again = await fetch(`${second.url}/v1/decisions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "umpire-decide", input: "a", questions: [] }),
    })
    expect(again.status).toBe(200)
    expect(first.stderr() + second.stderr()).not.toContain(key)
    await second.stop()
  })
})

test("a busy port is told in one sentence before anything is created", async () => {
  const taken = createServer().listen(0, "127.0.0.1")
  await once(taken, "listening")
  const { port } = taken.address() as AddressInfo
  const dataDirectory = join(freshDirectory(), "data")
  const { status, stderr, stdout } = run(["serve", "--port", String(port)], {
    UMPIRE_DATA_DIR: dataDirectory,
  })
  expect([status, stdout, stderr]).toEqual([
    1,
    "",
    `umpire serve: Cannot listen on 127.0.0.1:${port}: another process uses the port; stop it, or choose a port with --port (0 picks a free one)\n`,
  ])
  expect(existsSync(dataDirectory)).toBe(false)
  taken.close()
})

test("a data directory that cannot be written is told in one sentence", () => {
  const file = join(freshDirectory(), "file")
  writeFileSync(file, "")
  const { status, stderr } = run(["serve", "--port", "0"], { UMPIRE_DATA_DIR: join(file, "data") })
  expect(status).toBe(1)
  expect(stderr.trim().split("\n").at(-1)).toBe(
    `umpire serve: Cannot write to ${file}/data: make it a folder of the user that runs umpire, or name another with UMPIRE_DATA_DIR`,
  )
})

const canMount = spawnSync("unshare", ["--mount", "true"]).status === 0

test.runIf(canMount)("a data directory on a read-only file system is told in the same sentence", () => {
  const folder = freshDirectory()
  const mounted = `mount -t tmpfs -o ro none "${folder}" && exec "${process.execPath}" "${umpire}" serve --port 0`
  for (const directory of [folder, join(folder, "data")]) {
    const { status, stderr } = spawnSync("unshare", ["--mount", "sh", "-c", mounted], {
      encoding: "utf8",
      env: { PATH: process.env["PATH"] ?? "", UMPIRE_DATA_DIR: directory },
    })
    const said = stderr.trim().split("\n").at(-1)
    expect([status, said]).toEqual([1, expect.stringContaining(`Cannot write to ${directory}: make it`)])
  }
})

describe.runIf(process.platform === "linux")("on a terminal, the first start", () => {
  test.each([
    ["opens the console's link in the browser", "", true],
    ["opens nothing with --no-open", " --no-open", false],
  ])("%s", async (_name, option, opens) => {
    const folder = freshDirectory()
    const browser = join(folder, "browser")
    writeFileSync(browser, `#!/bin/sh\necho "$1" > ${folder}/opened\n`, { mode: 0o755 })
    await prepareDirectory(join(folder, "data", "database"))
    const env = {
      PATH: process.env["PATH"] ?? "",
      BROWSER: browser,
      UMPIRE_DATA_DIR: join(folder, "data"),
      // As in startServer: two threads that wait for one another crawl beside other tests.
      UMPIRE_ENGINE_THREADS: "1",
    }
    const line = `"${process.execPath}" "${umpire}" serve --port 0${option}`
    const terminal = spawn("script", ["-qec", line, "/dev/null"], { env, stdio: ["pipe", "pipe", "inherit"] })
    const lines = createInterface({ input: terminal.stdout })
    const printed: string[] = []
    for await (const text of lines) {
      printed.push(text)
      if (text.includes("Umpire is ready")) terminal.stdin.write("\u0003")
    }
    const text = printed.join("\n")
    expect(text).toContain("Loading umpire-decide...")
    const link = /http\S+\/sign-in#link=\w+/.exec(text)?.[0]
    if (opens)
      await expect
        .poll(() => existsSync(`${folder}/opened`) && readFileSync(`${folder}/opened`, "utf8"))
        .toBe(`${link}\n`)
    else expect([link !== undefined, existsSync(`${folder}/opened`)]).toEqual([true, false])
  })
})

describe("a server that starts unattended", () => {
  let server: TestServer
  beforeAll(async () => {
    server = await startServer({
      env: {
        UMPIRE_BOOTSTRAP_EMAIL: "ada@example.com",
        UMPIRE_BOOTSTRAP_PASSWORD: "correct horse battery",
        // What is in flight at the end may take long on a busy machine.
        UMPIRE_SERVER_SHUTDOWN_MS: "300000",
      },
    })
  })
  afterAll(async () => void (await server.stop()))

  test("says that it is ready in a line of the log too", async () => {
    // What follows the last end of a line is not whole yet.
    const lines = (): unknown[] =>
      server
        .stderr()
        .split("\n")
        .slice(0, -1)
        .map((line) => JSON.parse(line) as unknown)
    const ready = {
      level: "info",
      time: expect.any(String) as string,
      url: server.url,
      data_dir: server.dataDirectory,
      msg: "ready",
    }
    await expect.poll(lines).toContainEqual(ready)
  })

  test("takes the operator's key and prints nothing secret", async () => {
    expect(
      (await server.post("/v1/decisions", { model: "umpire-decide", input: "a", questions: [] })).status,
    ).toBe(200)
    const printed = server.stdout() + server.stderr()
    expect(printed).not.toContain(bootstrapKey.slice(-20))
    expect(printed).not.toContain("correct horse")
  })

  test("refuses a second process on its directory with a sentence", () => {
    const second = spawnSync(process.execPath, [umpire, "serve"], {
      encoding: "utf8",
      env: { ...process.env, UMPIRE_DATA_DIR: server.dataDirectory, UMPIRE_PORT: "0" },
    })
    expect(second.status).toBe(1)
    expect(second.stderr).toMatch(/Cannot .*(?:another|in use|process)/i)
  })

  test("keys made while the server runs work at once, and revoked ones stop", async () => {
    const env = { UMPIRE_DATA_DIR: server.dataDirectory }
    const { id, secret } = JSON.parse(run(["keys", "create", "--name", "ci", "--json"], env).stdout) as {
      id: string
      secret: string
    }
    const call = async (): Promise<number> =>
      (
        await fetch(`${server.url}/v1/decisions`, {
          method: "POST",
          headers: { authorization: `Bearer ${secret}`, "content-type": "application/json" },
          body: JSON.stringify({ model: "umpire-decide", input: "a", questions: [] }),
        })
      ).status
    expect(await call()).toBe(200)
    expect(run(["keys", "list"], env).stdout).toContain(id)
    expect(run(["keys", "list"], env).stdout).not.toContain(secret)
    expect(run(["keys", "revoke", id], env).status).toBe(0)
    expect(await call()).toBe(401)

    const asked = run(
      [
        "ask",
        "--yes-no",
        "Does the customer ask for a refund?",
        "--choice",
        "What is it about? = billing | delivery",
        "--score",
        "How angry? = calm | furious",
      ],
      { UMPIRE_URL: server.url, UMPIRE_API_KEY: server.key, NO_COLOR: "1" },
      "I was charged twice. I want my money back.",
    )
    expect(asked.stdout).toMatch(/Does the customer ask for a refund\? {2}yes\n {2}yes +\d+\.\d% {2}█/)
    expect(asked.stdout).toContain("billing (confidence")
    expect(asked.stdout).toMatch(/\d\.\d\d of 1 \(confidence/)
    const json = run(["ask", "--text", "Rain.", "-y", "Does it rain?", "--json"], {
      UMPIRE_URL: server.url,
      UMPIRE_API_KEY: server.key,
    })
    expect(JSON.parse(json.stdout)).toMatchObject({ answers: [{ type: "predicate" }] })
    const again = JSON.parse(run(["keys", "first", "--json"], env).stdout) as {
      secret: string
      console_url: string
    }
    expect(again).toMatchObject({ url: server.url })
    expect(again.console_url).toMatch(new RegExp(`^${server.url}/sign-in#link=\\w+$`))
    const models = await fetch(`${server.url}/v1/models`, {
      headers: { authorization: `Bearer ${again.secret}` },
    })
    expect(models.status).toBe(200)
    expect(run(["users", "link"], env).stdout).toContain(`${server.url}/sign-in#link=`)
    const { port } = new URL(server.url)
    const examined = run(["doctor"], { ...env, UMPIRE_PORT: port })
    expect(examined.stdout).toContain("open in the running server")
    expect(examined.stdout).toMatch(new RegExp(`✓ port +\\S+:${port} is in use; a server`))
  })

  test("answers a request in flight before it ends", async () => {
    const questions = Array.from({ length: 200 }, (_, index) => ({
      type: "predicate",
      instructions: `Is the number ${index} named?`,
    }))
    const answer = server.post("/v1/decisions", {
      model: "umpire-decide",
      input: "One, two, three.",
      questions,
    })
    await fetch(`${server.url}/healthz`)
    const [response, status] = await Promise.all([answer, server.stop()])
    expect([response.status, status]).toEqual([200, 0])
  })
})

describe("the command line", () => {
  test.each([
    ["an unknown command", ["sing"], 2, "no command sing"],
    ["an unknown option", ["ask", "--loud"], 2, "--loud"],
    ["no question", ["ask", "--text", "a"], 2, "no question"],
    [
      "no server",
      ["ask", "--text", "a", "-y", "b", "--url", "http://127.0.0.1:9"],
      2,
      "is the server running",
    ],
    ["a bad setting", ["serve"], 1, "server.port"],
  ])("%s is told in one sentence", (_name, args, status, said) => {
    const { stderr, status: ended } = run(args, {
      UMPIRE_API_KEY: "ump_x_0123456789abcdef",
      UMPIRE_PORT: "many",
    })
    expect([ended, stderr]).toEqual([status, expect.stringContaining(said)])
    expect(stderr).not.toMatch(/^\s+at /m)
  })

  test("doctor finds a sound machine sound, and says what is wrong with a broken configuration", () => {
    const sound = run(["doctor", "--json"], { UMPIRE_DATA_DIR: freshDirectory() })
    expect(JSON.parse(sound.stdout)).toEqual(
      expect.arrayContaining([expect.objectContaining({ name: "engine library", state: "ok" })]),
    )
    const broken = run(["doctor"], { UMPIRE_PORT: "many" })
    expect([broken.status, broken.stdout]).toEqual([1, expect.stringContaining("server.port")])
  })

  test("an operator's command does not make an installation where there is none", () => {
    const directory = join(freshDirectory(), "none")
    const { status, stderr } = run(["keys", "list"], { UMPIRE_DATA_DIR: directory })
    expect([status, stderr]).toEqual([1, expect.stringContaining(`there is no installation in ${directory}`)])
    // The catalog is known without one.
    expect(run(["models", "list"], { UMPIRE_DATA_DIR: directory }).stdout).toContain("umpire-decide")
    expect(existsSync(directory)).toBe(false)
  })

  test("every command explains itself", async () => {
    const written = vi.spyOn(process.stdout, "write").mockReturnValue(true)
    onTestFinished(() => written.mockRestore())
    const help = async (...args: string[]): Promise<[number, string]> => {
      written.mockClear()
      const status = await main([...args, "--help"])
      return [status, written.mock.calls.map(([text]) => String(text)).join("")]
    }
    const [, overview] = await help()
    const names = [...overview.matchAll(/^ {2}(\w+) {2}/gm)].map(([, name = ""]) => name)
    expect(names).toContain("serve")
    for (const name of names)
      expect([name, ...(await help(name))]).toEqual([name, 0, expect.stringContaining(`umpire ${name}`)])
    // A word that is wider than the terminal is not broken.
    const wide = async (name: string, columns: number): Promise<string[]> =>
      (await help(name))[1].split("\n").filter((line) => line.length > columns && /\s\S+\s/.test(line.trim()))
    for (const name of names) expect([name, await wide(name, 100)]).toEqual([name, []])
  })
})
