/**
 * Agents as they come from npm run a turn with a tool against the server, and one with a model that runs on it. They are large, and
 * installed at first use.
 */
import { execFile } from "node:child_process"
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { promisify } from "node:util"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { type AgentsScene, hasResult, openAgentsScene } from "./agents-scene.ts"
import { keptFolder } from "./run-folder.ts"
import { scriptedModel } from "./scripted-model.ts"
import { testPackage } from "./test-packages.ts"
import type { UpstreamRequest } from "./upstream.ts"

const codexVersion = "0.169.0"
/** The model that Codex asks for by default: it then sends its tools as an item of the input. */
const codexModel = "gpt-6.1-sol"
const claudeVersion = "2.1.325"
const installMs = 600_000
/** A prompt of tens of thousands of tokens takes two minutes and more where the model runs on a busy machine. */
const turnMs = 600_000
const isLinux = process.platform === "linux" && ["x64", "arm64"].includes(process.arch)
/** What the model on the server says, whatever it is asked: those that come with Umpire are too small for an agent's prompt. */
const nearPieces = ["Good", " day", " from", " nearby"]

let scene: AgentsScene
/** What the model calls when it is first asked. */
let call = { name: "", arguments: "" }
const offers = ({ tools }: UpstreamRequest): boolean =>
  tools?.some((tool) => tool.function.name === call.name) ?? false

beforeAll(async () => {
  const { file } = await scriptedModel({ pieces: nearPieces, contextTokens: 262_144 })
  scene = await openAgentsScene(
    (request) => {
      if (hasResult(request)) return { text: `The file says ${lastContent(request)}` }
      // Titles and other side questions offer no tools.
      return offers(request) ? { calls: [call] } : { text: "A short title." }
    },
    [{ sku: "near", file }],
    [{ sku: "far" }, { sku: codexModel }],
  )
})
afterAll(async () => {
  await scene.close()
})

const lastContent = ({ messages }: UpstreamRequest): string => messages.at(-1)?.content ?? ""

/** A folder with a file to read, for one run. */
/** Codex runs tools in a sandbox with a /dev of its own, where temporary files of a run may lie. */
const workplaces = mkdtempSync(join(keptFolder(), "umpire-agents-"))
afterAll(() => rmSync(workplaces, { recursive: true }))

function workplace(name: string): { home: string; work: string } {
  const home = join(workplaces, name)
  const work = join(home, "work")
  mkdirSync(work, { recursive: true })
  writeFileSync(join(work, "hello.txt"), "quite a lot of cheese\n")
  return { home, work }
}

const run = promisify(execFile)
const umpire = join(import.meta.dirname, "..", "bin", "umpire.js")

async function connectCodex(home: string, model: string): Promise<void> {
  const args = ["connect", "codex", "--url", scene.server.url, "--model", model]
  await run(process.execPath, [umpire, ...args], { env: { HOME: home }, cwd: home })
}

/** The largest file of the package of this platform, wherever npm put it. */
function binaryIn(folder: string, name: string): string {
  const found = readdirSync(folder, { recursive: true, withFileTypes: true }).find(
    (entry) => entry.isFile() && entry.name === name && /bin|claude-code-linux-\w+$/.test(entry.parentPath),
  )
  if (!found) throw new Error(`There is no ${name} in ${folder}`)
  return join(found.parentPath, found.name)
}

describe.runIf(isLinux)("Codex as umpire connect configures it", () => {
  let binary = ""
  beforeAll(async () => {
    const place = await testPackage("@openai/codex", codexVersion)
    binary = binaryIn(dirname(place), "codex")
  }, installMs)

  const read = { name: "exec_command", arguments: JSON.stringify({ cmd: "cat hello.txt" }) }
  const script = 'text(await tools.exec_command({ cmd: "cat hello.txt" }))'
  const cheese = "quite a lot of cheese"
  test.each([
    ["reads a file by a tool and says what it says, over HTTP", "far", "", read, cheese],
    [
      "reads a file by a tool and says what it says, over a WebSocket",
      "far",
      "supports_websockets",
      read,
      cheese,
    ],
    [
      "reads a file by a tool that is an item of the input, with its own default model",
      codexModel,
      "",
      { name: "functions__exec", arguments: JSON.stringify({ input: script }) },
      cheese,
    ],
    ["says what a model on the server says", "near", "", read, nearPieces.join("")],
  ])(
    "%s",
    async (name, model, more, called, said) => {
      call = called
      const { home, work } = workplace(`codex-${model}-${more.length}`)
      await connectCodex(home, model)
      const config = join(home, ".codex", "umpire.config.toml")
      if (more !== "")
        writeFileSync(config, readFileSync(config, "utf8") + `model_providers.umpire.${more} = true\n`)
      const env = { PATH: process.env["PATH"], HOME: home, UMPIRE_API_KEY: scene.server.key }
      const args = [
        "exec",
        "--profile",
        "umpire",
        "--skip-git-repo-check",
        "--json",
        "What does hello.txt say?",
      ]
      const child = run(binary, args, { cwd: work, env, timeout: turnMs })
      child.child.stdin?.end()
      const { stdout } = await child
      expect(stdout, name).toContain(said)
      expect(stdout).toContain('"type":"turn.completed"')
      expect(stdout).not.toContain('"type":"turn.failed"')
    },
    turnMs,
  )
})

describe.runIf(isLinux)("Claude Code", () => {
  let binary = ""
  beforeAll(async () => {
    const place = await testPackage("@anthropic-ai/claude-code", claudeVersion)
    const own = join(dirname(place), `claude-code-linux-${process.arch}`, "claude")
    binary = existsSync(own) ? own : binaryIn(dirname(dirname(place)), "claude")
  }, installMs)

  test.each([
    ["reads a file by a tool and says what it says", "far", "quite a lot of cheese"],
    ["says what a model on the server says", "near", nearPieces.join("")],
  ])(
    "%s",
    async (_, model, said) => {
      const { home, work } = workplace(`claude-${model}`)
      const file = join(work, "hello.txt")
      call = { name: "Read", arguments: JSON.stringify({ file_path: file }) }
      const env = {
        PATH: process.env["PATH"],
        HOME: home,
        ANTHROPIC_BASE_URL: scene.server.url,
        ANTHROPIC_API_KEY: scene.server.key,
        ANTHROPIC_MODEL: model,
        ANTHROPIC_SMALL_FAST_MODEL: model,
        ANTHROPIC_DEFAULT_HAIKU_MODEL: model,
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
        DISABLE_AUTOUPDATER: "1",
      }
      const args = ["-p", "What does hello.txt say?", "--output-format", "json", "--allowedTools", "Read"]
      const child = run(binary, args, { cwd: work, env, timeout: turnMs })
      child.child.stdin?.end()
      const { stdout } = await child
      const result = JSON.parse(stdout) as { is_error?: boolean; result?: string }
      expect(result.is_error).toBe(false)
      expect(result.result).toContain(said)
    },
    turnMs,
  )
})
