/** Turns a JSON schema into a grammar whose every text is JSON that the schema accepts. */
import type { JsonObject } from "./json-object.ts"
import { type Grammar, Shortest, pruned } from "./grammar.ts"
import { Budget, SchemaError, SchemaRefusal } from "./budget.ts"
import { checkBounds } from "./bounds.ts"
import { Emitter } from "./emit.ts"
import { Normaliser } from "./normalise.ts"

/** Longer answers are beyond the context of most models. */
const SHORTEST_CHARACTERS_MAX = 65_536

export interface SchemaOptions {
  /** Refuse what cannot be enforced, rather than leave it open. */
  readonly strict: boolean
  /** Shared by the schemas of one request; a schema by itself has one of its own. */
  readonly budget?: Budget
}

export interface SchemaGrammar extends Grammar {
  /** JSON pointers of the keywords that the grammar leaves open. */
  readonly notEnforced: readonly string[]
}

/** Throws a `SchemaError`. */
export function schemaGrammar(schema: JsonObject, { strict, budget }: SchemaOptions): SchemaGrammar {
  checkBounds(schema)
  try {
    const spent = budget ?? new Budget()
    const normaliser = new Normaliser(schema, { strict, budget: spent })
    const emitter = new Emitter(normaliser)
    const root = emitter.value(normaliser.goal(schema, "narrow", ""))
    const written = { root, rules: emitter.rules }
    const shortest = new Shortest(written, (rules) => spent.spend(rules))
    const grammar = pruned(written, shortest)
    if (!grammar) throw new SchemaRefusal("no value that can be written satisfies it")
    if (shortest.length(root) > SHORTEST_CHARACTERS_MAX)
      throw new SchemaRefusal(`its shortest value has more than ${SHORTEST_CHARACTERS_MAX} characters`)
    return { ...grammar, notEnforced: [...normaliser.notEnforced] }
  } catch (error) {
    if (error instanceof SchemaRefusal) throw refusal(error)
    // The stack is what schemas that contain each other use up first.
    if (error instanceof RangeError) throw refusal(new SchemaRefusal("it is nested too deeply"))
    throw error
  }
}

/** Any JSON object. */
export function objectGrammar(): Grammar {
  const emitter = new Emitter(new Normaliser({}, { strict: false, budget: new Budget() }))
  return { root: emitter.anyObject(), rules: emitter.rules }
}

function refusal({ message, path }: SchemaRefusal): SchemaError {
  const where = path === "" ? "the schema" : `the schema at ${path.slice(0, 200)}`
  return new SchemaError(`Cannot enforce ${where}: ${message}`)
}
