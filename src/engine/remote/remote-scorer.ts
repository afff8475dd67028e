/** Decisions at a worker: every branch a prompt of its own with the evidence first, answered by one token's log-probabilities. */
import { objectOf } from "../../base/json.ts"
import { Fault } from "../../contract/errors.ts"
import { promptText } from "../branch.ts"
import type { EngineCall, Scored, ScoreEngine, ScoreWork } from "../engine.ts"
import { MARKER, type PromptFrame, specialLooking, splitAtMarker, splitTemplate } from "../prompt.ts"
import { readGguf } from "../gguf.ts"
import type { Dialect, ScoreCall, TokenizeCall } from "./dialects.ts"
import type { RemoteModel } from "./remote-generator.ts"
import { type HttpClient, garbage } from "./http-client.ts"

export interface RemoteScoredModel extends RemoteModel {
  /** A GGUF of the same model on this machine, for its chat template; null asks the worker. */
  readonly file: string | null
  readonly quantization: string
}

/** Branches sent at the same time, after the first has left the evidence in the worker's cache. */
const CONCURRENCY_MAX = 16

const yesTexts = ["yes", "Yes", "YES", " yes", " Yes", " YES"]
const noTexts = ["no", "No", "NO", " no", " No", " NO"]

interface Ready {
  readonly head: readonly number[]
  readonly tail: readonly number[]
  readonly yes: ReadonlySet<number>
  readonly no: ReadonlySet<number>
}

/** Null where its tokenizer or its chat template is not to be had: the tokens of a branch are not guessed. */
export function tokenScorer(
  client: HttpClient,
  dialect: Dialect,
  model: RemoteScoredModel,
): Pick<ScoreEngine, "score"> | null {
  const { tokenize, score, template } = dialect
  if (!tokenize || !score || (!template && model.file === null)) return null
  let opening: Promise<Ready> | null = null
  const ready = async (signal: AbortSignal): Promise<Ready> => {
    const current = (opening ??= open(client, dialect, { call: tokenize, model, signal }))
    // A worker that was unreachable may answer the next time.
    current.catch(() => (opening = null))
    return await current
  }
  return {
    score: async (work, call) => {
      const frame = await ready(call.signal)
      return await scoreBranches({ client, tokenize, score, model, frame }, work, call)
    },
  }
}

async function open(
  client: HttpClient,
  dialect: Dialect,
  {
    call,
    model,
    signal,
  }: { readonly call: TokenizeCall; readonly model: RemoteScoredModel; readonly signal: AbortSignal },
): Promise<Ready> {
  const { head, tail } = await frameOf(client, dialect, { model, signal })
  const ids = async (text: string): Promise<number[]> =>
    await tokens(client, call, { model: model.name, text, signal })
  const single = async (texts: readonly string[]): Promise<Set<number>> => {
    const found = await Promise.all(texts.map(ids))
    return new Set(found.flatMap((one) => (one.length === 1 ? one : [])))
  }
  const [yes, no] = [await single(yesTexts), await single(noTexts)]
  if (yes.size === 0 || no.size === 0)
    throw new Fault(
      "decisions_unsupported",
      "Cannot decide with this model: it has no single token for yes or no",
    )
  const special = {
    ...call,
    body: (text: string, name: string) => ({ ...call.body(text, name), parse_special: true }),
  }
  return {
    head: head === "" ? [] : await tokens(client, special, { model: model.name, text: head, signal }),
    tail: tail === "" ? [] : await tokens(client, special, { model: model.name, text: tail, signal }),
    yes,
    no,
  }
}

async function frameOf(
  client: HttpClient,
  { template }: Dialect,
  { model, signal }: { readonly model: RemoteScoredModel; readonly signal: AbortSignal },
): Promise<PromptFrame> {
  if (model.file !== null) {
    const { chatTemplate } = await readGguf(model.file)
    return splitTemplate({ template: chatTemplate, bosText: "", eosText: "" })
  }
  if (!template)
    throw new Fault(
      "decisions_unsupported",
      "Cannot decide with this model: its chat template is not known; name the model's file in its catalog entry",
    )
  const answer = objectOf(await client.json(template.path, template.body(MARKER), signal))
  const text = answer[template.field]
  const frame = typeof text === "string" ? splitAtMarker(text) : null
  if (!frame) throw garbage("its chat template cannot be split")
  return frame
}

async function tokens(
  client: HttpClient,
  call: TokenizeCall,
  { model, text, signal }: { readonly model: string; readonly text: string; readonly signal: AbortSignal },
): Promise<number[]> {
  const answer = objectOf(await client.json(call.path, call.body(text, model), signal))
  const found = answer[call.field]
  if (!Array.isArray(found) || !found.every((id) => Number.isInteger(id)))
    throw garbage("it has no list of tokens")
  return found
}

async function plainTokens(
  client: HttpClient,
  call: TokenizeCall,
  { model, text, signal }: { readonly model: string; readonly text: string; readonly signal: AbortSignal },
): Promise<number[]> {
  const cuts = [...text.matchAll(specialLooking)].map(({ index }) => index + 1)
  const pieces = [0, ...cuts].map((start, place) => text.slice(start, cuts[place] ?? text.length))
  const found: number[] = []
  for (const piece of pieces)
    if (piece !== "") found.push(...(await tokens(client, call, { model, text: piece, signal })))
  return found
}

interface ScorerDeps {
  readonly client: HttpClient
  readonly tokenize: TokenizeCall
  readonly score: ScoreCall
  readonly model: RemoteScoredModel
  readonly frame: Ready
}

async function scoreBranches(
  deps: ScorerDeps,
  { evidence, branches }: ScoreWork,
  { admit, signal }: EngineCall,
): Promise<Scored> {
  const { client, tokenize, model, frame } = deps
  const prefix = [
    ...frame.head,
    ...(await plainTokens(client, tokenize, { model: model.name, text: evidence, signal })),
  ]
  const suffixes = await inGroups(branches, CONCURRENCY_MAX, async (branch) => [
    ...(await plainTokens(client, tokenize, { model: model.name, text: promptText(branch), signal })),
    ...frame.tail,
  ])
  const longest = Math.max(0, ...suffixes.map((suffix) => suffix.length))
  if (prefix.length + longest + 1 > model.contextTokensMax)
    throw new Fault(
      "context_length_exceeded",
      `Cannot score the request: its longest branch has ${prefix.length + longest} tokens; the model's context is ${model.contextTokensMax} tokens`,
    )
  const inputTokens = suffixes.reduce((sum, suffix) => sum + suffix.length, prefix.length)
  await admit(inputTokens)
  const one = async (suffix: readonly number[]): Promise<number> =>
    await margin(deps, [...prefix, ...suffix], signal)
  const [first, ...rest] = suffixes
  // The first goes alone, so that the others find the evidence in the worker's cache.
  const margins = first === undefined ? [] : [await one(first)]
  margins.push(...(await inGroups(rest, CONCURRENCY_MAX, one)))
  return { margins: Float64Array.from(margins), inputTokens }
}

/** A missing probability is asked for again with more alternatives, and is never invented. */
async function margin(
  { client, score, model, frame }: ScorerDeps,
  prompt: readonly number[],
  signal: AbortSignal,
): Promise<number> {
  const wanted = [...frame.yes, ...frame.no]
  for (const top of score.tops) {
    const answer = await client.json(score.path, score.body(prompt, model.name, wanted, top), signal)
    const found = score.read(answer)
    if (!found) throw garbage("it has no log-probabilities")
    const yes = found.filter(([id]) => frame.yes.has(id)).map(([, logprob]) => logprob)
    const no = found.filter(([id]) => frame.no.has(id)).map(([, logprob]) => logprob)
    if (yes.length > 0 && no.length > 0) return logSumExp(yes) - logSumExp(no)
  }
  throw garbage("the probability of yes or of no is not among the likeliest tokens")
}

function logSumExp(values: readonly number[]): number {
  const most = Math.max(...values)
  return most + Math.log(values.reduce((sum, value) => sum + Math.exp(value - most), 0))
}

async function inGroups<Item, Result>(
  items: readonly Item[],
  size: number,
  work: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = []
  for (let start = 0; start < items.length; start += size)
    results.push(...(await Promise.all(items.slice(start, start + size).map(work))))
  return results
}
