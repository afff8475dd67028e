/**
 * Public suites from PyPI against the server: LangChain's standard tests on its clients of OpenAI and Anthropic, and what Open Responses'
 * suite asks, judged by the types of its specification. A scripted provider writes the answers.
 */
import { execFile } from "node:child_process"
import { join } from "node:path"
import { promisify } from "node:util"
import { afterAll, beforeAll, expect, test } from "vitest"
import { type AgentsScene, openAgentsScene } from "./agents-scene.ts"
import { answerBySchema } from "./answer-by-schema.ts"
import { installPython } from "./python.ts"
import { installMs } from "./run-folder.ts"

const packages = [
  "langchain-tests==1.1.9",
  "langchain-core==1.7.2",
  "langchain-openai==1.7.3",
  "langchain-anthropic==1.7.7",
  "openai==3.51.0",
  "anthropic==2.10.0",
  "openresponses-types==2.4.0",
]

let scene: AgentsScene
let python = ""
beforeAll(async () => {
  const media = { input_modalities: ["text", "image", "file"] }
  scene = await openAgentsScene(
    answerBySchema,
    [],
    [{ sku: "far" }, { sku: "other" }, { sku: "sees", ...media }],
  )
  python = await installPython(scene.directory, packages)
}, installMs)
afterAll(async () => {
  await scene.close()
})

/** One event loop: their clients keep connections from test to test. */
const loop = ["asyncio_mode=auto", "asyncio_default_test_loop_scope=session"]
const options = ["-q", "-rfE", "--tb=short", "-p", "no:cacheprovider", "--benchmark-disable", "-W", "ignore"]

// What is skipped of LangChain's needs files of other sites, or recordings.
test.each([
  ["LangChain's standard tests", "langchain_standard.py", "136 passed, 19 skipped"],
  ["Open Responses", "open_responses.py", "6 passed"],
])("%s pass", async (_, name, summary) => {
  const file = join(import.meta.dirname, "programs", name)
  const env = { ...process.env, UMPIRE_URL: scene.server.url, UMPIRE_API_KEY: scene.server.key }
  const run = promisify(execFile)(
    python,
    ["-m", "pytest", ...options, ...loop.flatMap((option) => ["-o", option]), file],
    { cwd: scene.directory, env },
  )
  const output = await run.then(
    ({ stdout }) => stdout,
    (error: Error & { stdout?: string }) => error.stdout ?? error.message,
  )
  expect(output.trim().split("\n").at(-1)).toMatch(new RegExp(`^${summary} in `))
})
