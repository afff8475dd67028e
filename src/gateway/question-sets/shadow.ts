/** Shadows: another version or model answers a share of the requests beside the published one, unseen and uncharged. */
import type { Ids } from "../../base/ids.ts"
import type { Log } from "../../base/log.ts"
import type { Principal } from "../../contract/access.ts"
import { questionSetLimits } from "../../contract/question-sets/content.ts"
import { insertReviewItems } from "../../store/content/review.ts"
import { type ShadowResult, insertShadowResults } from "../../store/question-sets/jobs.ts"
import type { Database } from "../../store/sql.ts"
import { isExample } from "./policy.ts"
import { isSampled } from "../content/content-logger.ts"
import { type AskVersionDeps, askVersion } from "./score-texts.ts"
import type { FoundSet, Sets } from "./sets.ts"
import type { Verdict } from "../classification/verdict.ts"
import type { AskedVersion } from "./version.ts"

export interface ShadowDeps extends AskVersionDeps {
  readonly database: Database
  readonly sets: Pick<Sets, "find">
  readonly ids: Ids
  readonly log: Log
}

/** A request that was answered. */
export interface AnsweredRequest {
  readonly found: FoundSet
  readonly organizationId: string
  readonly principal: Principal
  readonly sequenceId: string
  readonly evidence: string
  /** What splits are sticky by. */
  readonly key: string
  readonly verdicts: readonly Verdict[]
  /** Whether its evidence is kept, so that people can review where the shadow differs. */
  readonly isKept: boolean
}

export interface Shadows {
  /** Returns at once; the shadow answers later, if at all. */
  observe(answered: AnsweredRequest): void
  /** Waits for those that are at work. */
  close(): Promise<void>
}

/** What is more than this is left out: a shadow must not stand in the way of requests. */
const runningMax = 4

export function createShadows(deps: ShadowDeps): Shadows {
  const running = new Set<Promise<void>>()
  const stop = new AbortController()
  return {
    observe(answered) {
      const { shadow } = answered.found
      if (!shadow || running.size >= runningMax || !isSampled("shadow", answered.sequenceId, shadow.share))
        return
      const work = run(deps, answered, stop.signal)
        .catch((error: unknown) => {
          if (!stop.signal.aborted) deps.log.warn({ err: error }, "a shadow of a question set failed")
        })
        .finally(() => running.delete(work))
      running.add(work)
    },
    close: async () => {
      stop.abort(new Error("The server is stopping"))
      await Promise.all(running)
    },
  }
}

async function run(deps: ShadowDeps, answered: AnsweredRequest, stopping: AbortSignal): Promise<void> {
  const { found, organizationId, principal, sequenceId, evidence, key, verdicts } = answered
  const { version: published, shadow } = found
  if (!shadow) return
  const signal = AbortSignal.any([stopping, AbortSignal.timeout(deps.timeoutMs)])
  const other = await shadowOf(deps, organizationId, published, shadow)
  const questionNames = other.questions
    .map(({ question }) => question.name ?? "")
    .filter((name) => verdicts.some((verdict) => verdict.name === name))
  // There is nothing to compare, and to name none would ask all.
  if (questionNames.length === 0) return
  const caller = {
    callSource: "shadow",
    principal,
    organizationId,
    requestId: sequenceId,
    isCharged: false,
  } as const
  const shadowed = await askVersion(deps, caller, other, { evidence, questionNames, key }, signal)
  const results = shadowed.flatMap((verdict): ShadowResult[] => {
    const own = verdicts.find(({ name }) => name === verdict.name)
    if (!own) return []
    return [
      {
        question: verdict.name,
        version: published.number,
        shadowVersion: other.number,
        shadowModel: other.model,
        verdict: written(own),
        shadowVerdict: written(verdict),
        confidence: own.confidence,
        shadowConfidence: verdict.confidence,
      },
    ]
  })
  const at = new Date(deps.clock.nowMs())
  const keptMax = questionSetLimits.shadowResultsMax
  await insertShadowResults(deps.database, published.setId, results, { at, keptMax })
  if (answered.isKept && isExample(evidence)) await askReviewers(deps, answered, results, at)
}

async function askReviewers(
  { database, ids }: ShadowDeps,
  { found, organizationId, sequenceId }: AnsweredRequest,
  results: readonly ShadowResult[],
  createdAt: Date,
): Promise<void> {
  const differing = results.filter(({ verdict, shadowVerdict }) => verdict !== shadowVerdict)
  await insertReviewItems(
    database,
    differing.map(({ question, version }) => ({
      id: ids.next("rev"),
      setId: found.version.setId,
      organizationId,
      seqId: sequenceId,
      question,
      version,
      reason: "shadow_differs",
      secondLook: false,
      createdAt,
    })),
  )
}

async function shadowOf(
  { sets }: ShadowDeps,
  organizationId: string,
  published: AskedVersion,
  shadow: { readonly version: number | null; readonly model: string | null },
): Promise<AskedVersion> {
  const reference = { name: published.setId, version: String(shadow.version ?? published.number) }
  const { version } = await sets.find(organizationId, reference)
  // A model that is named is the one to be tried, whatever was taught on another.
  return shadow.model === null ? version : { ...version, model: shadow.model, taughtOn: [] }
}

const written = ({ value, isAbstention }: Verdict): string =>
  isAbstention ? "abstain" : JSON.stringify(value)
