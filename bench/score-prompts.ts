/**
 * Scores the prompts of a reference file with an exported model, for the recipe's comparison with full precision.
 *
 *   node bench/score-prompts.ts --model FILE --reference reference.json --out measured.json
 *
 * Reads a list of {evidence, branch}, writes a list of {tokens, margin} in the same order.
 */
import { readFileSync, writeFileSync } from "node:fs"
import { parseArgs } from "node:util"
import { z } from "zod"
import { Scorer } from "../src/engine/llama/scorer.ts"

const Prompts = z.array(z.object({ evidence: z.string(), branch: z.string() }))

const { values } = parseArgs({
  options: { model: { type: "string" }, reference: { type: "string" }, out: { type: "string" } },
})
const { model, reference, out } = values
if (model === undefined || reference === undefined || out === undefined) {
  throw new Error("Cannot score: --model, --reference and --out must all be given")
}

const prompts = Prompts.parse(JSON.parse(readFileSync(reference, "utf8")))
const engine = await Scorer.open({ modelFile: model })
try {
  const measured: { tokens: number; margin: number | undefined }[] = []
  const signal = new AbortController().signal
  for (const { evidence, branch } of prompts) {
    const work = { organizationId: "bench", evidence, branches: [branch] }
    const prepared = await engine.prepare(work, signal)
    const [margin] = await engine.run(prepared, signal)
    measured.push({ tokens: prepared.inputTokens, margin })
  }
  writeFileSync(out, JSON.stringify(measured))
  console.log(`scored ${measured.length} prompts`)
} finally {
  await engine.close()
}
