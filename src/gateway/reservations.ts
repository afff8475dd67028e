/**
 * What one request may use: the limits and budgets of its API key and of its tags, and the credit of its organization's billing
 * account. All of them admit it, or none holds anything for it.
 */
import type { Model } from "../base/catalog.ts"
import type { Ticks } from "../base/money.ts"
import type { Rate, RateLimits } from "../base/rate-limiter.ts"
import type { BudgetPeriod, Principal, RateLimit } from "../contract/access.ts"
import type { SequenceRecord } from "../store/journal/record.ts"
import { Fault, type FaultCode } from "../contract/errors.ts"
import { budgetId, type TagBudget } from "../store/budgets.ts"
import type { Organizations } from "../store/organization-snapshot.ts"
import type { Reservation } from "./money/lease-account.ts"
import type { LeaseBook } from "./money/lease-book.ts"
import type { Tags } from "../contract/tags.ts"

/** Who pays, and which budgets the cost is held under. */
export interface RecordedHolds extends Pick<
  SequenceRecord,
  "billing_account_id" | "budgets" | "tag_budgets"
> {
  readonly billing_mode: "prepaid" | "postpaid" | null
}

export interface ReservationDeps {
  readonly leases: Pick<LeaseBook, "reserve">
  /** Of API keys and tags. */
  readonly budgets: Pick<LeaseBook, "reserve">
  readonly tagBudgets: TagBudgets
  /** What the tokens of a key, and the requests and tokens of a tag, are counted by. */
  readonly rateLimits: RateLimits
  readonly payers: Payers
}

interface Payers {
  of(organizationId: string): Promise<string>
}

export interface MatchedTagBudget {
  readonly id: string
  /** Those with a cutoff; others only count what is spent. */
  readonly periods: readonly BudgetPeriod[]
  readonly rateLimit: RateLimit | null
  readonly tokensPerMinute: number | null
  readonly key: string
  readonly value: string
}

interface TagBudgets {
  /** Those that a request with these tags is held under. */
  of(organizationId: string, tags: Tags): Promise<readonly MatchedTagBudget[]>
}

/** The most that the request can use from here on, and what it has used before. */
interface Estimate {
  readonly inputTokens: number
  readonly ticks: Ticks
}

export class Reservations {
  readonly #deps: ReservationDeps
  readonly #principal: Principal
  /** The time that its cost counts for. */
  readonly #atMs: number
  readonly #minuteLimits: MinuteLimits
  #payerId: string | null = null
  #credit: Reservation | null = null
  /** The same cost, held under the budgets of the key and of the tags, by whose they are. */
  #held: readonly {
    readonly of: string
    readonly period: BudgetPeriod
    readonly reservation: Reservation
  }[] = []
  /** What is spent counts for all of them. */
  #tagBudgets: readonly MatchedTagBudget[] = []

  constructor(deps: ReservationDeps, principal: Principal, atMs: number) {
    this.#deps = deps
    this.#principal = principal
    this.#atMs = atMs
    this.#minuteLimits = new MinuteLimits(deps.rateLimits, principal)
  }

  /** What may be charged; null where nothing is reserved. */
  get ticks(): Ticks | null {
    return this.#credit?.ticks ?? null
  }

  /** Another model reads the request too. */
  beginStage(): void {
    this.#minuteLimits.beginStage()
  }

  async reserve(organizationId: string, tags: Tags, model: Model, estimate: Estimate): Promise<void> {
    const { leases, payers, tagBudgets } = this.#deps
    const payerId = await payers.of(organizationId)
    // Most requests have none, and need not know.
    if (Object.keys(tags).length > 0) this.#tagBudgets = await tagBudgets.of(organizationId, tags)
    this.#checkModel(model)
    try {
      await this.#minuteLimits.take(estimate.inputTokens, this.#tagBudgets)
      // Of a stage that failed: one request holds credit once.
      this.#release()
      await this.#hold(estimate.ticks)
      this.#credit = await leases.reserve(payerId, this.#atMs, estimate.ticks)
    } catch (error) {
      this.#release()
      // Nothing has been answered: models that were tried before have failed, and do not count if a smaller one is admitted.
      this.#minuteLimits.takeBack()
      throw error
    }
    this.#payerId = payerId
  }

  /** Admits a further stage to what is reserved already, and gives back what is not needed. */
  async admitStage(model: Model, { inputTokens, ticks }: Estimate): Promise<void> {
    this.#checkModel(model)
    await this.#minuteLimits.take(inputTokens)
    this.#credit?.reduce(ticks)
    for (const { reservation } of this.#held) reservation.reduce(ticks)
  }

  #checkModel({ sku }: Model): void {
    const { keyLimits } = this.#principal
    if (keyLimits?.allowedModels && !keyLimits.allowedModels.includes(sku))
      throw new Fault("model_denied", `Cannot run the request: the API key may not use the model ${sku}`, {
        param: "model",
      })
  }

  /** All budgets of the key and of the tags; the caller releases those held where one refuses. */
  async #hold(ticks: Ticks): Promise<void> {
    const { id: ofKey, keyLimits } = this.#principal
    const owners = [{ id: ofKey, periods: keyLimits?.budgets ?? [] }, ...this.#tagBudgets]
    const wanted = owners.flatMap(({ id, periods }) => periods.map((period) => ({ of: id, period })))
    for (const { of, period } of wanted) {
      const reservation = await this.#deps.budgets.reserve(budgetId(of, period), this.#atMs, ticks)
      this.#held = [...this.#held, { of, period, reservation }]
    }
  }

  /** After a refusal: the record names only the budgets that its cost is held under. */
  #release(): void {
    this.settle(0n)
    this.#held = []
    this.#credit = null
  }

  /** Charges the cost; the rest of what was reserved goes back. */
  settle(costTicks: Ticks): void {
    this.#credit?.settle(costTicks)
    for (const { reservation } of this.#held) reservation.settle(costTicks)
  }

  /** What is written is counted when it is known: later requests wait for it. */
  countWritten(outputTokens: number): void {
    this.#minuteLimits.countWritten(outputTokens)
  }

  recorded(): RecordedHolds {
    const periodsOf = (id: string): BudgetPeriod[] =>
      this.#held.filter(({ of }) => of === id).map(({ period }) => period)
    const ofKey = periodsOf(this.#principal.id)
    return {
      billing_account_id: this.#payerId,
      billing_mode: this.#credit?.mode ?? null,
      budgets: ofKey.length > 0 ? ofKey : undefined,
      tag_budgets:
        this.#tagBudgets.length > 0
          ? Object.fromEntries(this.#tagBudgets.map(({ id }) => [id, periodsOf(id)]))
          : undefined,
    }
  }
}

const minuteMs = 60_000

interface Limit {
  readonly counts: "requests" | "tokens"
  /** What the rate limiter counts it under. */
  readonly key: string
  readonly rate: Rate
  /** What the caller is told. */
  readonly sentence: string
}

type TagLimits = Pick<MatchedTagBudget, "id" | "key" | "value" | "rateLimit" | "tokensPerMinute">

interface Taken {
  readonly limit: Limit
  readonly count: number
}

/** What the request counts against the limits a minute of its key and of its tags, each of them or none. */
class MinuteLimits {
  readonly #rateLimits: RateLimits
  readonly #principal: Pick<Principal, "id" | "keyLimits">
  #tags: readonly TagLimits[] = []
  /** A request that is admitted again with a shorter answer is the same request and reads the same. */
  readonly #counted = new Set<Limit["counts"]>()
  /** Of all stages. */
  #taken: readonly Taken[] = []

  constructor(rateLimits: RateLimits, principal: Pick<Principal, "id" | "keyLimits">) {
    this.#rateLimits = rateLimits
    this.#principal = principal
  }

  /** Another model reads it too; it is still one request. */
  beginStage(): void {
    this.#counted.delete("tokens")
  }

  /** Throws Fault `rate_limited`. */
  async take(inputTokens: number, tags: readonly TagLimits[] = this.#tags): Promise<void> {
    this.#tags = tags
    const due = this.#limits().filter(({ counts }) => !this.#counted.has(counts))
    const taken: Taken[] = []
    for (const limit of due) {
      const count = limit.counts === "requests" ? 1 : inputTokens
      const { isAllowed, retryAfterMs } = await this.#rateLimits.take(limit.key, limit.rate, count)
      if (!isAllowed) {
        this.#uncount(taken)
        throw new Fault("rate_limited", `Cannot run the request: ${limit.sentence}; try again later`, {
          retryAfterMs: Math.max(1, retryAfterMs),
        })
      }
      taken.push({ limit, count })
    }
    for (const { counts } of due) this.#counted.add(counts)
    this.#taken = [...this.#taken, ...taken]
  }

  /** For a request that is refused after all: nothing of it counts, of no stage. */
  takeBack(): void {
    this.#uncount(this.#taken)
    this.#taken = []
    this.#counted.clear()
  }

  #uncount(taken: readonly Taken[]): void {
    for (const { limit, count } of taken) this.#rateLimits.add(limit.key, limit.rate, -count)
  }

  /** What is written is counted when it is known: later requests wait for it. */
  countWritten(outputTokens: number): void {
    if (outputTokens === 0) return
    for (const { counts, key, rate } of this.#limits())
      if (counts === "tokens") this.#rateLimits.add(key, rate, outputTokens)
  }

  #limits(): Limit[] {
    const { id, keyLimits } = this.#principal
    return [
      ...tokenLimit(id, keyLimits?.tokensPerMinute ?? null, "the API key"),
      ...this.#tags.flatMap(({ id: tagId, key, value, rateLimit, tokensPerMinute }) => {
        const name = `the tag ${key}=${value}`
        return [...requestLimit(tagId, rateLimit, name), ...tokenLimit(tagId, tokensPerMinute, name)]
      }),
    ]
  }
}

function requestLimit(id: string, limit: TagLimits["rateLimit"], name: string): Limit[] {
  if (limit === null) return []
  const { requestsPerMinute, burst } = limit
  return [
    {
      counts: "requests",
      key: `requests ${id}`,
      rate: { burst, intervalMs: minuteMs / requestsPerMinute },
      sentence: `${name} may have ${requestsPerMinute} requests a minute`,
    },
  ]
}

/** As many at once as a minute allows. */
function tokenLimit(id: string, tokensPerMinute: number | null, name: string): Limit[] {
  if (tokensPerMinute === null) return []
  return [
    {
      counts: "tokens",
      key: `tokens ${id}`,
      rate: { burst: tokensPerMinute, intervalMs: minuteMs / tokensPerMinute },
      sentence: `${name} may use ${tokensPerMinute} tokens a minute`,
    },
  ]
}

const creditCodes: ReadonlySet<FaultCode> = new Set<FaultCode>([
  "insufficient_credits",
  "spend_limit_exceeded",
  "key_budget_exceeded",
  "tag_budget_exceeded",
])

/** Whether a reservation was refused that less of the same would not be. */
export const isShortOfCredit = (error: unknown): error is Fault =>
  error instanceof Fault && creditCodes.has(error.code)

export function createPayers(organizations: Pick<Organizations, "of">): Payers {
  return {
    async of(organizationId) {
      const found = await organizations.of(organizationId)
      if (found) return found.organization.billingAccountId
      throw new Fault("permission_denied", "Cannot run the request: its organization does not exist")
    },
  }
}

export function createTagBudgets(organizations: Pick<Organizations, "of">): TagBudgets {
  return {
    async of(organizationId, tags) {
      const found = await organizations.of(organizationId)
      const own = found?.tagBudgets.filter(
        ({ tagKey, tagValue }) => Object.hasOwn(tags, tagKey) && tags[tagKey] === tagValue,
      )
      return (own ?? []).map(matched)
    },
  }
}

const matched = (budget: TagBudget): MatchedTagBudget => ({
  id: budget.id,
  key: budget.tagKey,
  value: budget.tagValue,
  periods: budget.budgets.flatMap(({ period, cutoff_cents }) => (cutoff_cents === null ? [] : [period])),
  rateLimit:
    budget.rateLimitPerMinute === null || budget.rateLimitBurst === null
      ? null
      : { requestsPerMinute: budget.rateLimitPerMinute, burst: budget.rateLimitBurst },
  tokensPerMinute: budget.tokensPerMinute === null ? null : Number(budget.tokensPerMinute),
})
