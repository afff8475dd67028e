/** The raw margins of a decisions request, for an operator who fits a calibration to labelled questions. */
import { z } from "zod"
import type { Catalog, Model } from "../base/catalog.ts"
import { Fault } from "../contract/errors.ts"
import type { ScoreEngine } from "../engine/engine.ts"
import { branchCount } from "./classification/classification.ts"
import { decodeDecisions } from "./classification/wire.ts"

interface MarginsParts {
  readonly catalog: Catalog
  scorer(model: Model): Promise<ScoreEngine>
}

const MarginsInput = z.strictObject({ request: z.record(z.string(), z.unknown()) })
const timeoutMs = 120_000

/** One list of margins per question, in question order. */
export async function margins(parts: MarginsParts, input: unknown): Promise<number[][]> {
  const { request } = MarginsInput.parse(input)
  const { evidence, branches, questions, model: sku } = decodeDecisions(Buffer.from(JSON.stringify(request)))
  const model = parts.catalog.find(sku, "decisions")
  if (!model)
    throw new Fault("unknown_model", `Cannot score: no model ${JSON.stringify(sku)} is in the catalog`)
  const engine = await parts.scorer(model)
  const signal = AbortSignal.timeout(timeoutMs)
  const prepared = await engine.prepare({ organizationId: "operator", evidence, branches }, signal)
  const all = await prepared.run(signal)
  let start = 0
  return questions.map((question) => {
    const end = start + branchCount(question)
    const own = [...all.subarray(start, end)]
    start = end
    return own
  })
}
