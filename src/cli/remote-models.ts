/** `umpire models connect` and `umpire models check`: models at the servers of others. */
import { setTimeout as sleep } from "node:timers/promises"
import { isPaidFor, remoteDialects, usualAddresses } from "../contract/model-check.ts"
import type { OperatorClient } from "../contract/client.ts"
import type { Action } from "./actions.ts"
import { UsageError, numberOf, required, show, text, wholeNumbersFrom } from "./command.ts"

const connect: Action<OperatorClient> = async (context, open) => {
  const { positionals, environment } = context
  const dialect = remoteDialects.find((one) => one === positionals[1])
  if (!dialect)
    throw new UsageError(`which kind of server? umpire models connect ${remoteDialects.join("|")} MODEL`)
  const model = required(positionals[2], `which model? umpire models connect ${dialect} MODEL`)
  const url = text(context, "url") ?? usualAddresses[dialect]
  if (url === null) throw new UsageError("where is it? name its address with --url")
  const variable = text(context, "key-from")
  const key = variable === undefined ? undefined : environment[variable]
  if (variable !== undefined && !key) throw new UsageError(`the variable ${variable} is not set`)
  const [inputPrice, outputPrice] = [text(context, "input-price"), text(context, "output-price")]
  if (isPaidFor(dialect, url) && (inputPrice === undefined || outputPrice === undefined))
    throw new UsageError(
      "what does it cost? name --input-price and --output-price, in USD per million tokens: budgets count by them; 0 says that it is free",
    )
  const price = inputPrice ?? "0"
  const { client } = await open()
  const body = {
    sku: text(context, "sku") ?? model,
    dialect,
    url,
    model,
    context_tokens_max: numberOf(context, "context", wholeNumbersFrom(1)) ?? 128_000,
    price_m_input_tokens_usd: price,
    price_m_input_cache_read_tokens_usd: text(context, "cached-price") ?? price,
    price_m_output_tokens_usd: outputPrice ?? "0",
    ...(key === undefined ? {} : { key }),
  }
  const added = await client.connectModel({ body })
  const next = added.calibrated === false ? ` Calibrate it with: umpire models check ${added.sku}` : ""
  return show(
    context,
    added,
    () => `${added.sku} answers, and decides by ${added.decides ?? "its own endpoint"}.${next}\n`,
  )
}

const POLL_MS = 1_000

/** Says the price first; with a limit of the cost it asks, and waits for the end. */
const check: Action<OperatorClient> = async (context, open) => {
  const model = required(context.positionals[1], "which model? umpire models check NAME")
  const cost_max_usd = text(context, "cost-max")
  const { client } = await open()
  const ask = async (given: object) => await client.checkModel({ body: { model, ...given } })
  let state = await ask(cost_max_usd === undefined ? {} : { cost_max_usd })
  while (state.state === "running") {
    if (context.stdout.isTTY) context.stderr.write(`\r${state.done} of ${state.rows} questions`)
    await sleep(POLL_MS)
    state = await ask({})
  }
  if (context.stdout.isTTY) context.stderr.write("\r\u001b[K")
  show(context, state, () => {
    switch (state.state) {
      case "needless":
        return `${model} decides by ${state.method}, and needs no calibration.\n`
      case "done": {
        const left = state.left_out.map(({ row, reason }) => `Row ${row} is left out: ${reason}\n`).join("")
        return `${left}${model} is right in ${Math.round((state.accuracy ?? 0) * 100)} % of ${state.rows} questions, and calibrated. It cost USD ${state.cost_usd}.\n`
      }
      case "failed":
        return `The check of ${model} failed: ${state.problem ?? ""}\n`
      default:
        return `${state.rows} questions by ${state.method} cost at most USD ${state.cost_usd}. To ask them: umpire models check ${model} --cost-max ${state.cost_usd}\n`
    }
  })
  return state.state === "failed" ? 1 : 0
}

export const remoteActions = { connect, check }
