/** `umpire sets shadow`: another version or model answers a share of a set's requests unseen, and how its answers agree. */
import type { z } from "zod"
import type { OutputOf } from "../contract/endpoint.ts"
import type { ShadowSettings } from "../contract/question-sets/sets.ts"
import type { Table } from "../contract/table.ts"
import { percentText } from "../scoring/evaluation.ts"
import { connectApi } from "./api-client.ts"
import { type CliContext, UsageError, numberOf, show, text } from "./command.ts"
import { drawTable } from "./table.ts"

/** Starts one, ends it, or tells how its answers agree. */
export async function shadow(context: CliContext, name: string): Promise<number> {
  const { client, organizationId: org_id } = await connectApi(context)
  const params = { org_id, set_id: name }
  const started = shadowOf(context)
  if (started || context.values["stop"] === true) {
    const set = await client.updateQuestionSet({ params, body: { shadow: started } })
    return show(context, set.shadow, () => drawShadow(set.shadow))
  }
  const { shadow: running } = await client.getQuestionSet({ params })
  const report = await client.getQuestionSetShadowReport({ params })
  return show(context, { shadow: running, ...report }, () => drawShadow(running) + drawAgreement(report))
}

const shareDefault = 0.1

function shadowOf(context: CliContext): z.input<typeof ShadowSettings> | null {
  const [model, budget] = [text(context, "model"), text(context, "budget")]
  const [version, share] = [numberOf(context, "version"), numberOf(context, "share")]
  if (model === undefined && version === undefined) {
    if (share === undefined && budget === undefined) return null
    throw new UsageError("what answers beside it? --model MODEL, --version NUMBER or both")
  }
  if (context.values["stop"] === true) throw new UsageError("--stop ends it: leave --model and --version out")
  return {
    model: model ?? null,
    version: version ?? null,
    share: share ?? shareDefault,
    ...(budget === undefined ? {} : { cost_max_day_usd: budget }),
  }
}

function drawShadow(shadow: ShadowSettings | null): string {
  if (!shadow) return "No shadow answers.\n"
  const { version, model, share, cost_max_day_usd } = shadow
  const who = [version === null ? null : `Version ${version}`, model].filter((one) => one !== null)
  return `${who.join(" with ") || "The published version"} answers ${percentText(share)} of the requests unseen, for at most $${cost_max_day_usd} a day.\n`
}

const pairsDrawn = 10

function drawAgreement({ questions, days }: OutputOf<Table["getQuestionSetShadowReport"]>): string {
  if (questions.length === 0) return "Nothing was compared yet.\n"
  const rows = questions.map((one) => [
    one.question,
    `${one.shadow_version} with ${one.shadow_model} beside ${one.version}`,
    String(one.answers),
    percentText(one.agreement),
    one.kappa === null ? "" : one.kappa.toFixed(2),
  ])
  const pairs = questions.flatMap((one) =>
    one.confusion
      .filter(({ verdict, shadow_verdict }) => verdict !== shadow_verdict)
      .slice(0, pairsDrawn)
      .map((pair) => [
        one.question,
        one.shadow_model,
        told(pair.verdict),
        told(pair.shadow_verdict),
        String(pair.answers),
      ]),
  )
  const spent = days.map(({ day, questions: asked, unanswered, cost_usd }) => [
    day,
    String(asked),
    String(unanswered),
    `$${cost_usd}`,
  ])
  return (
    drawTable(["question", "shadow", "answers", "agree", "kappa"], rows) +
    (pairs.length > 0 ? drawTable(["question", "shadow", "answer", "shadow's", "times"], pairs) : "") +
    (spent.length > 0 ? drawTable(["day", "answered", "not asked", "cost"], spent) : "")
  )
}

const told = (verdict: string | boolean | number | null): string =>
  verdict === null ? "(abstains)" : String(verdict)
