/** Answers the classification endpoints: decode, find the model, prepare, run, read the answers. */
import type { Catalog, Model } from "../base/catalog.ts"
import { EncodedJson, type Call, type Handlers } from "../contract/endpoint.ts"
import { Fault } from "../contract/errors.ts"
import type { Table } from "../contract/table.ts"
import type { ScoreEngine } from "../engine/engine.ts"
import { type Calibrations, calibrated, readCalibration } from "./calibrated.ts"
import { answer } from "./classification/answer.ts"
import type { Classification } from "./classification/classification.ts"
import { decodeDecisions } from "./classification/decode-decisions.ts"
import { decodeSystemOne } from "./classification/decode-systemone.ts"
import { readRoutingHint } from "./routing-hint.ts"

export interface ClassifyParts {
  readonly catalog: Catalog
  /** The engine that scores with a model. */
  scorer(model: Model): Promise<ScoreEngine>
  readonly nullDescriptions: boolean
  /** Every region there is, by its id. */
  readonly regions: readonly string[]
  readonly calibrations: Calibrations
}

type ClassificationHandlers = Pick<Handlers<Table>, "createDecision" | "createSystemOne">
type BytesCall = Call<unknown, unknown, Uint8Array>

export function classificationHandlers(parts: ClassifyParts): ClassificationHandlers {
  return {
    createDecision: async (call) => await classify(parts, call, decodeDecisions(call.body)),
    createSystemOne: async (call) =>
      await classify(parts, call, decodeSystemOne(call.body, { nullDescriptions: parts.nullDescriptions })),
  }
}

async function classify(
  parts: ClassifyParts,
  call: BytesCall,
  classification: Classification,
): Promise<EncodedJson> {
  const model = findModel(parts.catalog, classification.model)
  readRoutingHint(call.request, parts.regions)
  const calibration = readCalibration(call.request, parts.calibrations)
  const { margins, inputTokens } = await score(() => parts.scorer(model), call, classification)
  return new EncodedJson(answer(classification, calibrated(margins, calibration), inputTokens))
}

async function score(
  scorer: () => Promise<ScoreEngine>,
  call: BytesCall,
  { evidence, branches }: Classification,
): Promise<{ margins: Float64Array; inputTokens: number }> {
  // Nothing asked: no answers and zero usage (decisions accepts an empty list).
  if (branches.length === 0) return { margins: new Float64Array(), inputTokens: 0 }
  const { signal } = call.request
  const organizationId = call.standing?.organizationId ?? ""
  const engine = await scorer()
  const prepared = await engine.prepare({ organizationId, evidence, branches }, signal)
  return { margins: await prepared.run(signal), inputTokens: prepared.inputTokens }
}

function findModel(catalog: Catalog, sku: string): Model {
  const model = catalog.find(sku)
  if (!model)
    throw new Fault(
      "unknown_model",
      `Cannot classify: no model ${JSON.stringify(sku)} is in the catalog; ${catalog.fallback.sku} is`,
      { param: "model" },
    )
  if (!model.enabled)
    throw new Fault("model_disabled", `Cannot classify: the model ${sku} is switched off`, { param: "model" })
  if (model.kind !== "generation")
    throw new Fault(
      "unknown_model",
      `Cannot classify: the model ${sku} makes embeddings; a generation model is needed`,
      { param: "model" },
    )
  return model
}
