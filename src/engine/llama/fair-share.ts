/** Divides the tokens of one decode: evenly between organizations, and evenly between the jobs of each. */
import type { Share } from "../../base/fair-queue.ts"

/** Tokens given to one job at a time: small enough that many jobs meet in one decode. */
const QUANTUM_TOKENS = 64

export interface Claim<Job extends Share> {
  readonly job: Job
  readonly organization: Share
  /** What the job could use in this decode. */
  readonly tokens: number
  /** A chunk of a prefix is decoded whole or not at all. */
  readonly whole: boolean
}

interface Allotment<Job extends Share> {
  readonly job: Job
  readonly tokens: number
}

/**
 * The least served organization's least served job goes first. A whole chunk that does not fit waits; its owner is then
 * among the least served and comes first in one of the next decodes, so nothing starves.
 */
export function allotTokens<Job extends Share>(
  claims: readonly Claim<Job>[],
  tokensMax: number,
): Allotment<Job>[] {
  const given = new Map<Claim<Job>, number>()
  const open = new Set(claims.filter((claim) => claim.tokens > 0))
  let left = tokensMax
  while (left > 0 && open.size > 0) {
    const claim = leastServed(open)
    const before = given.get(claim) ?? 0
    const wanted = claim.tokens - before
    if (claim.whole && wanted > left) {
      open.delete(claim)
      continue
    }
    const tokens = claim.whole ? wanted : Math.min(QUANTUM_TOKENS, wanted, left)
    given.set(claim, before + tokens)
    claim.job.servedTokens += tokens
    claim.organization.servedTokens += tokens
    left -= tokens
    if (tokens === wanted) open.delete(claim)
  }
  return [...given].map(([claim, tokens]) => ({ job: claim.job, tokens }))
}

function leastServed<Job extends Share>(claims: ReadonlySet<Claim<Job>>): Claim<Job> {
  let best: Claim<Job> | undefined
  for (const claim of claims) if (best === undefined || before(claim, best)) best = claim
  if (best === undefined) throw new RangeError("no claims")
  return best
}

function before<Job extends Share>(a: Claim<Job>, b: Claim<Job>): boolean {
  const between = a.organization.servedTokens - b.organization.servedTokens
  return between === 0 ? a.job.servedTokens < b.job.servedTokens : between < 0
}
