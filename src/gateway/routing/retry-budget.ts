/** Bounds retries as a share of requests, so that a failing worker is not answered with a multiple of the load. */

interface RetryBudgetOptions {
  /** Retries allowed per request, in the long run. */
  readonly ratio: number
  /** Retries that may be saved up: what a sudden failure of a worker may cost at once. */
  readonly savedMax: number
}

const standardRetryBudget: RetryBudgetOptions = { ratio: 0.2, savedMax: 200 }

export class RetryBudget {
  readonly #options: RetryBudgetOptions
  #saved: number

  constructor(options: RetryBudgetOptions = standardRetryBudget) {
    this.#options = options
    this.#saved = options.savedMax
  }

  /** A request came, which earns a part of a retry. */
  earn(): void {
    this.#saved = Math.min(this.#options.savedMax, this.#saved + this.#options.ratio)
  }

  /** Whether one more try may be made; then it is spent. */
  spend(): boolean {
    if (this.#saved < 1) return false
    this.#saved--
    return true
  }
}
