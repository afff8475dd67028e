/** Collects the parameters of a statement while its text is written. */
import type { Dialect, Statement, Values } from "./engine.ts"

export class StatementWriter {
  readonly #dialect: Dialect
  readonly #values: Record<string, Values[string]> = {}
  #count = 0

  constructor(dialect: Dialect) {
    this.#dialect = dialect
  }

  integer(value: number): string {
    return this.#dialect.parameter(this.#add(value), "Int64")
  }

  text(value: string): string {
    return this.#dialect.parameter(this.#add(value.toWellFormed()), "String")
  }

  texts(values: readonly string[]): string {
    return this.#dialect.parameter(this.#add(values.map((value) => value.toWellFormed())), "Array(String)")
  }

  finish(text: string): Statement {
    return { text: `${text}\n${this.#dialect.ending}`, values: this.#values }
  }

  #add(value: Values[string]): string {
    const name = `p${this.#count++}`
    this.#values[name] = value
    return name
  }
}
