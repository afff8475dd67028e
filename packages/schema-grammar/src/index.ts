/** A JSON schema as a grammar whose every text the schema accepts. */
export { accepts } from "./automaton.ts"
export { checkBounds } from "./bounds.ts"
export { Budget, SchemaError } from "./budget.ts"
export { type SchemaGrammar, objectGrammar, schemaGrammar } from "./compile.ts"
export {
  type Grammar,
  GrammarPath,
  type Rule,
  Shortest,
  all,
  any,
  shortestText,
  text,
  toGbnf,
} from "./grammar.ts"
export type { JsonObject } from "./json-object.ts"
export { patternOf } from "./pattern.ts"
