/** The playground's code, run as it was copied: each language gets a real answer from the server. */
import { execFile, spawnSync } from "node:child_process"
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { promisify } from "node:util"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import type { Scene } from "./console-scene.ts"

const run = promisify(execFile)
const answerMs = 30_000
/** What quoting gets wrong first. */
const awkward = 'It\'s "late" \\ $HOME `date` ${1} %s\n</script> {"a": null} é 🎈'
const hasPython = spawnSync("python3", ["--version"]).status === 0

const languages = [
  { name: "curl", file: "request.sh", command: "sh", exists: true },
  { name: "TypeScript · openai", file: "openai.ts", command: process.execPath, exists: true },
  { name: "TypeScript · @typesafe-ai/sdk", file: "typesafe.ts", command: process.execPath, exists: true },
  { name: "Python", file: "request.py", command: "python3", exists: hasPython },
] as const

export function codeTests(scene: Scene): void {
  describe.each(["Decisions", "System One"])("code for %s", (api) => {
    let folder = ""

    beforeAll(async () => {
      // Inside the repository, so that the packages are found as in a project of one's own.
      const out = join(import.meta.dirname, "out")
      mkdirSync(out, { recursive: true })
      folder = mkdtempSync(join(out, "code-"))
      await scene.open("playground")
      await scene.pick("Examples", "Support ticket")
      await scene.page.getByLabel("Evidence text").fill(awkward)
      await scene.page.getByLabel(api).check()
      await scene.click("Code")
      for (const { name, file } of languages) {
        await scene.page.getByLabel(name).check()
        await scene.click("Copy code")
        writeFileSync(join(folder, file), String(await scene.page.evaluate("navigator.clipboard.readText()")))
      }
      await scene.click("Close")
      await scene.page.getByLabel("Decisions").check()
    })
    afterAll(() => rmSync(folder, { recursive: true, force: true }))

    for (const { name, file, command, exists } of languages)
      test.skipIf(!exists)(`${name} is answered`, async () => {
        const { stdout } = await run(command, [join(folder, file)], {
          timeout: answerMs,
          env: { PATH: process.env["PATH"] ?? "", UMPIRE_API_KEY: scene.server.key },
        })
        // Each prints the answers in its own way; all name the three kinds with their figures.
        expect(stdout).toMatch(/predicate|noul/)
        expect(stdout).toMatch(/choice['"]?: ?['"](?:delivery|billing|account)['"]/)
        expect(stdout).toMatch(/score['"]?: ?[0-3](?:\.\d+)?/)
        expect(stdout.match(/probabilities/g)?.length).toBe(2)
      })
  })
}
