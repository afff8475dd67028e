import { existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { Writable } from "node:stream"
import { expect, test } from "vitest"
import { connect } from "./connect.ts"
import { connectedClients } from "./connect-clients.ts"

const key = "ump_1_secret"

async function run(home: string, positionals: string[], values: Record<string, string | boolean> = {}) {
  let stdout = ""
  const output = new Writable({
    write: (chunk: Buffer, _encoding, done) => ((stdout += chunk.toString()), done()),
  })
  const environment = { HOME: home, UMPIRE_API_KEY: key }
  const context = {
    positionals,
    values,
    environment,
    workingDirectory: home,
    stdout: output,
    stderr: output,
    stdin: process.stdin,
  }
  return { status: await connect.run(context), stdout: () => stdout }
}

const freshHome = (): string => mkdtempSync(join(tmpdir(), "umpire-connect-"))

test.each(Object.entries(connectedClients))(
  "%s: a second run changes nothing, the first keeps a backup, and no key is written",
  async (name, { file }) => {
    const home = freshHome()
    const path = join(home, file)
    mkdirSync(dirname(path), { recursive: true })
    const before = file.endsWith(".json") ? '{"theme":"dark","env":{"A":"1"}}' : "# mine\nOTHER=1\n"
    writeFileSync(path, before)
    const first = await run(home, [name])
    expect([first.status, readFileSync(`${path}.before-umpire`, "utf8")]).toEqual([0, before])
    const after = readFileSync(path, "utf8")
    expect(after).toContain("http://127.0.0.1:8484")
    expect(after + first.stdout()).not.toContain(key)
    expect(first.stdout()).toMatch(/^\+ /m)
    await run(home, [name])
    expect(readFileSync(path, "utf8")).toBe(after)
  },
)

test("what else a client's file says stays", async () => {
  const home = freshHome()
  mkdirSync(join(home, ".claude"))
  writeFileSync(join(home, ".claude/settings.json"), '{"theme":"dark","env":{"A":"1"}}')
  await run(home, ["claude"], { url: "https://umpire.example/", model: "big" })
  expect(JSON.parse(readFileSync(join(home, ".claude/settings.json"), "utf8"))).toEqual({
    theme: "dark",
    env: {
      A: "1",
      ANTHROPIC_BASE_URL: "https://umpire.example",
      ANTHROPIC_MODEL: "big",
      ANTHROPIC_SMALL_FAST_MODEL: "big",
    },
  })
})

test("another address replaces the first one where it stood", async () => {
  const home = freshHome()
  mkdirSync(join(home, ".codex"))
  const path = join(home, ".codex/umpire.config.toml")
  writeFileSync(path, "[other]\na = 1\n")
  await run(home, ["codex"])
  writeFileSync(path, `approval_policy = "never"\n${readFileSync(path, "utf8")}`)
  await run(home, ["codex"], { url: "http://127.0.0.1:9999" })
  const text = readFileSync(path, "utf8")
  expect(text).not.toContain("8484")
  expect(text.match(/model_providers\.umpire\.base_url/g)).toHaveLength(1)
  expect(text).toMatch(/^approval_policy = "never"\n[\s\S]*\n\[other\]\na = 1\n$/)
})

test("what 0.2 wrote into Codex' config.toml, which Codex refuses now, is taken out; the rest stays", async () => {
  const home = freshHome()
  mkdirSync(join(home, ".codex"))
  const path = join(home, ".codex/config.toml")
  const old = '# >>> umpire connect\n[profiles.umpire]\nmodel = "x"\n# <<< umpire connect\n'
  const before = `model = "mine"\n\n${old}\n[other]\na = 1\n`
  writeFileSync(path, before)
  await run(home, ["codex"])
  expect(readFileSync(path, "utf8")).toBe('model = "mine"\n\n\n[other]\na = 1\n')
  expect(readFileSync(`${path}.before-umpire`, "utf8")).toBe(before)
  expect(readFileSync(join(home, ".codex/umpire.config.toml"), "utf8")).toContain('model = "umpire-chat"')
})

test("secrets that a file holds are not shown, whether they stay or go", async () => {
  const home = freshHome()
  writeFileSync(
    join(home, ".env"),
    "OPENAI_API_KEY=sk-1\nexport DB_PASSWORD='sk-2'\nDATABASE_URL=postgres://ada:sk-3@db/x\nPORT=80\n",
  )
  const variables = await run(home, ["openai-env"])
  expect(variables.stdout()).not.toContain("sk-")
  expect(variables.stdout()).toContain("+ OPENAI_API_KEY=${UMPIRE_API_KEY}")
  expect(variables.stdout()).toContain("PORT=80")
  mkdirSync(join(home, ".claude"))
  const settings = join(home, ".claude/settings.json")
  writeFileSync(settings, '{"theme":"dark","env":{"ANTHROPIC_AUTH_TOKEN":"sk-4","B":"1"}}')
  const json = await run(home, ["claude"])
  expect(json.stdout()).not.toContain("sk-")
  writeFileSync(settings, '{"ANTHROPIC_AUTH_TOKEN":"sk-5" x')
  await expect(run(home, ["claude"])).rejects.toThrow(/settings\.json: it is not a JSON object$/)
})

test("a later run keeps the first backup", async () => {
  const home = freshHome()
  const path = join(home, ".env")
  writeFileSync(path, "OTHER=1\n")
  await run(home, ["openai-env"])
  const between = readFileSync(path, "utf8")
  await run(home, ["openai-env"], { url: "http://127.0.0.1:9999" })
  const backups = ["", ".2"].map((end) => readFileSync(`${path}.before-umpire${end}`, "utf8"))
  expect(backups).toEqual(["OTHER=1\n", between])
})

test("a dry run shows the difference and writes nothing", async () => {
  const home = freshHome()
  const { stdout } = await run(home, ["openai-env"], { "dry-run": true })
  expect(stdout()).toContain("+ OPENAI_BASE_URL=http://127.0.0.1:8484/v1")
  expect(existsSync(join(home, ".env"))).toBe(false)
})

test("an unknown client and a file that is not JSON are told in one sentence", async () => {
  const home = freshHome()
  await expect(run(home, ["emacs"])).rejects.toThrow(/which client\? umpire connect codex\|claude/)
  mkdirSync(join(home, ".claude"))
  writeFileSync(join(home, ".claude/settings.json"), "{")
  await expect(run(home, ["claude"])).rejects.toThrow(/cannot read .*settings\.json/)
  expect(readFileSync(join(home, ".claude/settings.json"), "utf8")).toBe("{")
})
