/** What compiling one schema may cost, counted in steps rather than in time so that the same schema always fares the same. */

/** About 100 ms on one core of a small machine that others use too. */
const STEPS_MAX = 75_000

/** A schema is refused; the sentence says why, for the schema's author. */
export class SchemaError extends Error {}

/** The schema cannot be compiled; the sentence says why. */
export class SchemaRefusal extends Error {
  readonly path: string

  constructor(message: string, path = "") {
    super(message)
    this.path = path
  }
}

export class Budget {
  #left: number

  constructor(steps = STEPS_MAX) {
    this.#left = steps
  }

  spend(steps = 1): void {
    this.#left -= steps
    if (this.#left < 0) throw new SchemaRefusal("it is too complex: what it allows is too large to work out")
  }
}
