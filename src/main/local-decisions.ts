/** Decisions by a model in this process, for commands that run without a server: nothing is stored or charged. */
import { loadConfig } from "../base/config.ts"
import { createLog } from "../base/log.ts"
import { dollarsOf } from "../base/money.ts"
import { installAdvice } from "../base/catalog.ts"
import type { CliContext } from "../cli/command.ts"
import type { LocalDecisions } from "../cli/label-asker.ts"
import type { DecisionsRequest } from "../contract/decisions.ts"
import { Fault } from "../contract/errors.ts"
import { admitAny, measure, type ScoreWork } from "../engine/engine.ts"
import { coherentMargins, type Classification } from "../gateway/classification/classification.ts"
import { decisionsAnswer, decodeDecisions } from "../gateway/classification/wire.ts"
import { catalogOptions, loadCatalog } from "./catalog.ts"
import { startEngine } from "./engines.ts"

const tokensPerPrice = 1_000_000
/** Evidence is cached for an organization; here is only one. */
const organizationId = "local"

export async function openLocalDecisions(
  { environment, workingDirectory }: Pick<CliContext, "environment" | "workingDirectory">,
  sku: string,
): Promise<LocalDecisions> {
  const config = loadConfig(environment, workingDirectory)
  const model = (await loadCatalog(config.models, catalogOptions(config))).find(sku, "decisions")
  if (!model || model.file === "")
    throw new Fault(
      "unknown_model",
      `Cannot run ${JSON.stringify(sku)} here: ${installAdvice(sku) ?? "no model of that name is on this machine"}`,
    )
  const engine = await startEngine(config, model, createLog("error"))
  const deadline = (): AbortSignal => AbortSignal.timeout(config.server.request_timeout_ms)
  return {
    priceUsd: dollarsOf(model.prices.inputTokenTicks) * tokensPerPrice,
    async decide(request) {
      const { classification, work } = read(request)
      const call = { signal: deadline(), admit: admitAny }
      const { margins: own, inputTokens } = await engine.score(work, call)
      const margins = coherentMargins(work.branches, own)
      return decisionsAnswer(classification, margins, { inputTokens, cachedInputTokens: 0 })
    },
    countTokens: async (request) =>
      await measure(async (admit) => await engine.score(read(request).work, { signal: deadline(), admit })),
    close: async () => await engine.close(),
  }
}

function read(request: DecisionsRequest): { classification: Classification; work: ScoreWork } {
  const classification = decodeDecisions(Buffer.from(JSON.stringify(request)))
  const { evidence, branches } = classification
  return { classification, work: { organizationId, evidence, branches } }
}
