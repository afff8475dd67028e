/** An artefact as teaching leaves it, without the teaching. */
import { createHash } from "node:crypto"
import type { TaughtArtefact } from "../src/scoring/teach/artefact.ts"
import { insertArtefact } from "../src/store/question-sets/sets.ts"
import type { Database } from "../src/store/sql.ts"

const interval = { value: 0.5, low: 0.4, high: 0.6 }
const figures = { rows: 2, accuracy: interval, calibrationError: interval, brier: interval }
const both = { before: figures, after: figures }

const artefact: TaughtArtefact = {
  version: 1,
  kind: "predicate",
  options: ["yes", "no"],
  modelVersion: "test/1",
  vectorSize: 0,
  seed: 1,
  examplesHash: "0".repeat(64),
  rows: { train: 2, heldOut: 1 },
  form: "temperature",
  parameters: { temperature: 2, bias: 0, priorWeight: 1, optionBiases: [], weights: "" },
  forms: [{ form: "temperature", logLoss: 0.5, standardError: 0.1 }],
  crossValidated: both,
  heldOut: null,
  baselines: { majority: 0.5, random: 0.5, emptyEvidence: null, answeredWithoutEvidence: true },
  heldOutAnswers: [{ confidence: 0.9, isRight: true }],
  notes: [],
}

/** Answers its hash. */
export async function seedArtefact(database: Database, setId: string): Promise<string> {
  const body = JSON.stringify(artefact)
  const hash = createHash("sha256").update(body).digest("hex")
  const { modelVersion } = artefact
  await insertArtefact(database, { setId, hash, question: "rude", body, modelVersion, createdAt: new Date() })
  return hash
}
