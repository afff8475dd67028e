/** The playground's code, run as it was copied: each language gets a real answer from the server. */
import { execFile, spawnSync } from "node:child_process"
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { promisify } from "node:util"
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest"
import type { Scene } from "./console-scene.ts"

const run = promisify(execFile)
const answerMs = 60_000
/** What quoting gets wrong first. */
const awkward = 'It\'s "late" \\ $HOME `date` ${1} %s\n</script> {"a": null} é 🎈'
const hasPython = spawnSync("python3", ["--version"]).status === 0

const languages = [
  { name: "curl", file: "request.sh", command: "sh", exists: true },
  { name: "OpenAI SDK", file: "openai.ts", command: process.execPath, exists: true },
  { name: "TypeSafe SDK", file: "typesafe.ts", command: process.execPath, exists: true },
  { name: "Python", file: "request.py", command: "python3", exists: hasPython },
] as const

export function codeTests(scene: Scene): void {
  describe.each(["Decisions", "System One"])("code for %s", (api) => {
    let folder = ""
    /** What the server says of the same evidence when nothing had to be quoted. */
    let probability = Number.NaN

    beforeAll(async () => {
      // Inside the repository, so that the packages are found as in a project of one's own.
      const out = join(import.meta.dirname, "out")
      mkdirSync(out, { recursive: true })
      folder = mkdtempSync(join(out, "code-"))
      await scene.open("playground")
      await scene.pick("Examples", "Support ticket")
      await scene.page.getByLabel("Text to judge").fill(awkward)
      await scene.page.getByLabel(api).check()
      await scene.click(/^Code$/)
      for (const { name, file } of languages) {
        await scene.page.getByLabel(name).check()
        const shown = await scene.page.getByLabel("Code", { exact: true }).textContent()
        await scene.click("Copy code")
        const copied = async (): Promise<unknown> =>
          await scene.page.evaluate("navigator.clipboard.readText()")
        await vi.waitFor(async () => expect(await copied()).toBe(shown), { timeout: answerMs })
        writeFileSync(join(folder, file), String(await copied()))
      }
      await scene.click("Close")
      await scene.page.getByLabel("Decisions").check()
      const questions = [{ type: "predicate", instructions: "Does the customer ask for a refund?" }]
      const asked = await scene.server.post("/v1/decisions", {
        model: "umpire-decide",
        input: awkward,
        questions,
      })
      // The contract's form of a decision with one predicate.
      const { answers } = (await asked.json()) as { answers: [{ probability: number }] }
      probability = answers[0].probability
    })
    afterAll(() => rmSync(folder, { recursive: true, force: true }))

    for (const { name, file, command, exists } of languages)
      test.skipIf(!exists)(`${name} is answered`, async () => {
        const { stdout } = await run(command, [join(folder, file)], {
          timeout: answerMs,
          env: { PATH: process.env["PATH"] ?? "", UMPIRE_API_KEY: scene.server.key },
        })
        // Each prints the answers in its own way; all name the three kinds with their figures.
        const [, said] = /(?:probability|noul)['"]?: ?(\d[\d.e-]*)/.exec(stdout) ?? []
        // The evidence arrived to the letter: another text has another probability.
        expect(Number(said)).toBeCloseTo(probability, 6)
        expect(stdout).toMatch(/choice['"]?: ?['"](?:delivery|account|praise)['"]/)
        expect(stdout).toMatch(/score['"]?: ?[0-2](?:\.\d+)?/)
        expect(stdout.match(/probabilities/g)?.length).toBe(2)
      })
  })
}
