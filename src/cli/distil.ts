/** `umpire distil`: a larger model answers the texts of a file for a question set, which then learns from the answers. */
import type { Client } from "../contract/client.ts"
import { isBlank, utf8Bytes } from "../contract/decisions.ts"
import { type DistilResult, distilLimits } from "../contract/question-sets/distil.ts"
import { questionSetLimits } from "../contract/question-sets/content.ts"
import { plural } from "../base/plural.ts"
import { type Ticks, ticksOfUsd, usdText } from "../base/money.ts"
import { connectApi } from "./api-client.ts"
import {
  type CliContext,
  type Command,
  UsageError,
  flagOption,
  required,
  show,
  text,
  valueOption,
} from "./command.ts"
import { apiOptions } from "./server-options.ts"
import { drawTaught, finishJob, readFileTexts, teachBody, teachSet } from "./sets.ts"

export const distil: Command = {
  usage: [
    "umpire distil refunds --from gpt-5-mini --rows tickets.csv --budget 2.00",
    "umpire distil refunds --from gpt-5-mini --rows tickets.jsonl --budget 2.00 --target 0.95",
    "umpire distil refunds --from gpt-5-mini --kept --budget 2.00",
    "",
    "The model's answers stand beside people's labels and prove no promise. A text that it has answered is not asked again: the same command goes on where it stopped, within the same budget. It exits with 1 when rows failed; they are named.",
    "--kept takes the newest kept requests of the set; what the model answered about them as a shadow or in a cascade is not asked again.",
  ],
  options: {
    from: valueOption("the model that answers, such as one that `umpire models connect` added"),
    rows: valueOption(
      "its texts: CSV or JSON lines with a field input or text, the input of a batch, or a text on each line",
    ),
    kept: flagOption("instead of rows: the newest kept requests of the set"),
    budget: valueOption("the most that the answers may cost, in USD, such as 2.00"),
    version: valueOption("the version whose questions are asked: a number or a label (default latest)"),
    target: valueOption("the share of right answers that thresholds are chosen for, such as 0.95"),
    "hold-out": flagOption("measure on a third of people's rows and do not learn from them"),
    "no-teach": flagOption("only keep the answers"),
    ...apiOptions,
  },
  run: distilSet,
}

interface NamedRow {
  readonly row: number
  readonly reason: string
}

async function distilSet(context: CliContext): Promise<number> {
  const name = required(
    context.positionals[0],
    "which set? umpire distil refunds --from MODEL --rows FILE --budget 2.00",
  )
  const model = required(text(context, "from"), "which model answers? --from MODEL")
  const path = text(context, "rows")
  const isKept = context.values["kept"] === true
  if (isKept === (path !== undefined)) throw new UsageError("which texts? --rows FILE, or --kept")
  const budget = budgetOf(required(text(context, "budget"), "how much may it cost? --budget 2.00"))
  const teaching = teachBody(context)
  const { texts, bad } =
    path === undefined ? { texts: null, bad: [] } : sorted(await readFileTexts(context, path))
  if (texts?.length === 0)
    throw new UsageError(`${path} has no texts: a field input or text, or a text on each line`)
  const api = await connectApi(context)
  const asked = await askAll(context, api, {
    name,
    model,
    budget,
    texts,
    version: teaching.version ?? "latest",
  })
  const failed = [...bad, ...asked.failed].toSorted((a, b) => a.row - b.row)
  const taught = context.values["no-teach"] === true ? null : await teachSet(context, api, name, teaching)
  show(
    context,
    { ...asked, failed, taught },
    () => drawDistilled({ ...asked, failed }, usdText(budget)) + (taught ? drawTaught(taught) : ""),
  )
  return failed.length > 0 ? 1 : 0
}

function budgetOf(given: string): Ticks {
  if (!/^\d{1,8}(\.\d{1,10})?$/.test(given) || ticksOfUsd(given) === 0n)
    throw new UsageError("--budget takes USD above 0, such as 2.00")
  return ticksOfUsd(given)
}

interface FileText {
  /** From 1, in the file. */
  readonly row: number
  readonly text: string
}

/** What may be sent, and what is wrong with the rest. */
function sorted(given: readonly unknown[]): { readonly texts: FileText[]; readonly bad: NamedRow[] } {
  const texts: FileText[] = []
  const bad: NamedRow[] = []
  for (const [at, one] of given.entries()) {
    const row = at + 1
    if (typeof one !== "string") bad.push({ row, reason: "it has no field input or text" })
    else if (isBlank(one)) bad.push({ row, reason: "its text is blank" })
    else if (utf8Bytes(one) > questionSetLimits.inputBytesMax)
      bad.push({ row, reason: "its text is over 64 KiB" })
    else if (one.includes("\u0000")) bad.push({ row, reason: "U+0000 is not allowed" })
    else texts.push({ row, text: one })
  }
  return { texts, bad }
}

interface Asking {
  readonly name: string
  readonly model: string
  readonly budget: Ticks
  /** Null: kept requests. */
  readonly texts: readonly FileText[] | null
  readonly version: string
}

type Asked = Omit<DistilResult, "failed_count">

/** One job after another, each with what the budget has left. */
async function askAll(
  context: CliContext,
  { client, organizationId: org_id }: { readonly client: Client; readonly organizationId: string },
  { name, model, budget, texts, version }: Asking,
): Promise<Asked> {
  const params = { org_id, set_id: name }
  const sum = { model, texts: 0, labelled: 0, known: 0, left: 0 }
  const failed: NamedRow[] = []
  let spent = 0n
  for (const part of texts ? partsOf(texts) : [null]) {
    if (part && (sum.left > 0 || spent >= budget)) {
      sum.left += part.length
      continue
    }
    const started = await client.distilQuestionSet({
      params,
      body: {
        version,
        model,
        budget_usd: usdText(budget - spent),
        ...(part ? { texts: part.map((one) => one.text) } : {}),
      },
    })
    const result = await finishJob(context, { client, params, kind: "distil" }, started)
    spent += ticksOfUsd(result.spent_usd)
    for (const field of ["texts", "labelled", "known", "left"] as const) sum[field] += result[field]
    failed.push(...result.failed.map(({ row, reason }) => ({ row: part?.[row - 1]?.row ?? row, reason })))
  }
  return { ...sum, failed, spent_usd: usdText(spent) }
}

/** As many as a job takes; half of its bytes, since JSON may double them. */
function partsOf(texts: readonly FileText[]): FileText[][] {
  const parts: FileText[][] = []
  let bytes = Infinity
  for (const one of texts) {
    const own = utf8Bytes(one.text)
    if (
      bytes + own > distilLimits.textsBytesMax / 2 ||
      (parts.at(-1)?.length ?? 0) >= distilLimits.textsMax
    ) {
      parts.push([])
      bytes = 0
    }
    parts.at(-1)?.push(one)
    bytes += own
  }
  return parts
}

function drawDistilled({ model, labelled, known, left, failed, spent_usd }: Asked, budget: string): string {
  return (
    failed.map(({ row, reason }) => `Row ${row}: ${reason}\n`).join("") +
    `${model} answered ${plural(labelled, "text")}, and ${known} before; $${spent_usd} of $${budget} spent.\n` +
    (left > 0 ? `${plural(left, "text")} left: the budget does not allow more.\n` : "")
  )
}
