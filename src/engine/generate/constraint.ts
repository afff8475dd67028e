/** What the output is held to: a JSON schema, or calls of the functions that a request offers. */
import {
  Budget,
  type Grammar,
  GrammarPath,
  type Rule,
  type SchemaGrammar,
  Shortest,
  all,
  any,
  objectGrammar,
  schemaGrammar,
  text,
} from "@umpire/schema-grammar"
import { Fault } from "../../contract/errors.ts"
import type { CallFormat, Family } from "./families.ts"
import type { FunctionTool, GenerateWork, JsonObject, ToolChoice } from "../engine.ts"
import { JsonObjectScan, type Reader, type ReadEvent } from "./reading.ts"
import { refusingSchemas } from "./refused-schema.ts"

interface ConstraintParts {
  readonly grammar: Grammar
  readonly param: string
  /** What the grammar leaves open of its schemas. */
  readonly notEnforced?: readonly string[]
  /** Text that opens what is constrained; it becomes the end of the prompt. */
  readonly opening?: string
  readonly read?: () => Reader
  readonly forced?: boolean
}

export class Constraint {
  readonly grammar: Grammar
  readonly param: string
  readonly opening: string
  /** The request asks for a call, whatever the model would have said. */
  readonly forced: boolean
  readonly notEnforced: readonly string[]
  readonly #path: GrammarPath
  readonly #read: (() => Reader) | undefined

  constructor(parts: ConstraintParts) {
    this.grammar = parts.grammar
    this.param = parts.param
    this.opening = parts.opening ?? ""
    this.forced = parts.forced ?? false
    this.notEnforced = parts.notEnforced ?? []
    this.#read = parts.read
    const shortest = new Shortest(parts.grammar)
    if (shortest.length(parts.grammar.root) === Infinity)
      throw new Fault("invalid_request", "Cannot enforce the schema: nothing finite matches it", {
        param: parts.param,
      })
    this.#path = new GrammarPath(parts.grammar, shortest)
  }

  /** Null when the request leaves the model free from its first token. */
  static of(work: GenerateWork, family: Family): Constraint | null {
    const { toolChoice, tools, format } = work
    if (toolChoice === "required" || typeof toolChoice === "object")
      return forcedCall(compileTools(tools, toolChoice), family)
    switch (format.kind) {
      case "text":
        return null
      case "json_object":
        return new Constraint({ grammar: objectGrammar(), param: "response_format", read: wholeText })
      case "json_schema": {
        const grammar = refusingSchemas("response_format", () =>
          schemaGrammar(format.schema, { strict: format.strict }),
        )
        const notEnforced = grammar.notEnforced.map((pointer) => `#${pointer}`)
        return new Constraint({ grammar, param: "response_format", notEnforced, read: wholeText })
      }
    }
  }

  /** Reads on, unless the way to the end would then be one that `fits` refuses. */
  tryAdvance(piece: string, fits: (end: string) => boolean): boolean {
    const before = this.#path.mark()
    if (this.#path.advance(piece) && fits(this.#path.shortestEnd())) return true
    this.#path.back(before)
    return false
  }

  get complete(): boolean {
    return this.#path.complete
  }

  /** Complete, and nothing more could be written. */
  get ended(): boolean {
    return this.#path.ended
  }

  /** The fewest characters to the end. */
  get shortest(): string {
    return this.#path.shortestEnd()
  }

  reader(): Reader | undefined {
    return this.#read?.()
  }
}

/** Constrained answers hold no marks: all of it is text. */
function wholeText(): Reader {
  return {
    opened: null,
    inReasoning: false,
    inCall: false,
    read: (piece) => (piece === "" ? [] : [{ kind: "text", text: piece }]),
    end: () => [],
  }
}

/** A function, and the grammar of its arguments. */
export interface CompiledTool {
  readonly name: string
  readonly grammar: SchemaGrammar
}

/** Those that may be called. The schemas of one request share what compiling may cost. */
export function compileTools(tools: readonly FunctionTool[], choice: ToolChoice): CompiledTool[] {
  if (choice === "none") return []
  const budget = new Budget()
  const offered = typeof choice === "object" ? tools.filter(({ name }) => name === choice.name) : tools
  return offered.map((tool) => ({ name: tool.name, grammar: argumentsGrammar(tool, budget) }))
}

/** JSON pointers into the parameters of each function, after its name. */
export const notEnforcedIn = (tools: readonly CompiledTool[]): string[] =>
  tools.flatMap(({ name, grammar }) => grammar.notEnforced.map((pointer) => `${name}#${pointer}`))

function forcedCall(offered: readonly CompiledTool[], family: Family): Constraint {
  if (offered.length === 0)
    throw new Fault("invalid_request", "Cannot force a function call: no such function is offered in tools", {
      param: "tool_choice",
    })
  // Formats whose arguments are not JSON cannot be forced; the common one is understood by most models.
  const format = family.calls.find(({ read }) => read === undefined)
  const [before, between] = format?.written ?? generalForm
  const harmony = family.name === "gpt-oss"
  const opening = harmony ? "<|channel|>commentary to=functions." : before
  const middle = harmony ? " <|constrain|>json<|message|>" : between
  return new Constraint({
    grammar: joined(offered, ({ name }) => [text(`${name}${middle}`)], []),
    notEnforced: notEnforcedIn(offered),
    param: "tools",
    opening,
    forced: true,
    read: () => new ForcedCallReader(middle),
  })
}

const generalForm = ['<tool_call>\n{"name": "', '", "arguments": '] as const

/** After a model opened a call by itself: the name of an offered function, then arguments that fit it. */
export function callsGrammar(tools: readonly CompiledTool[], format: CallFormat): Constraint | null {
  if (format.read !== undefined || tools.length === 0 || format.onlyAtStart) return null
  const [before, between, after] = format.written
  const head = before.slice(before.indexOf(format.open) + format.open.length)
  const close = after.slice(0, Math.max(0, after.indexOf(format.close)) + format.close.length)
  const grammar = joined(tools, ({ name }) => [text(`${head}${name}${between}`)], [text(close)])
  return new Constraint({ grammar, param: "tools" })
}

/** One grammar of several functions, each with rules of its own. */
function joined(
  tools: readonly CompiledTool[],
  before: (tool: CompiledTool) => readonly Rule[],
  after: readonly Rule[],
): Grammar {
  const rules = new Map<string, Rule>()
  const options = tools.map((tool, index) => {
    const { grammar } = tool
    for (const [name, rule] of grammar.rules) rules.set(`t${index}-${name}`, renamed(rule, `t${index}-`))
    return all(...before(tool), renamed(grammar.root, `t${index}-`), ...after)
  })
  return { root: any(...options), rules }
}

function argumentsGrammar({ parameters, strict, name }: FunctionTool, budget: Budget): SchemaGrammar {
  const schema: JsonObject =
    parameters === null || Object.keys(parameters).length === 0
      ? { type: "object", properties: {}, additionalProperties: false }
      : parameters
  return refusingSchemas(`tools.${name}.parameters`, () => schemaGrammar(schema, { strict, budget }))
}

function renamed(rule: Rule, prefix: string): Rule {
  switch (rule.kind) {
    case "name":
      return { kind: "name", name: prefix + rule.name }
    case "all":
      return { kind: "all", parts: rule.parts.map((part) => renamed(part, prefix)) }
    case "any":
      return { kind: "any", options: rule.options.map((option) => renamed(option, prefix)) }
    case "repeat":
      return { ...rule, rule: renamed(rule.rule, prefix) }
    case "text":
    case "set":
      return rule
  }
}

/** Reads `name`, what stands between, and the arguments of the one call that was asked for. */
class ForcedCallReader implements Reader {
  readonly opened = null
  readonly inReasoning = false
  readonly #between: string
  readonly #scan = new JsonObjectScan()
  #held = ""
  #named = false
  #ended = false

  constructor(between: string) {
    this.#between = between
  }

  get inCall(): boolean {
    return this.#named && !this.#ended
  }

  read(piece: string): ReadEvent[] {
    if (this.#ended) return []
    this.#held += piece
    const events: ReadEvent[] = []
    if (!this.#named) {
      const index = this.#held.indexOf(this.#between)
      if (index < 0) return []
      events.push({ kind: "call", name: this.#held.slice(0, index) })
      this.#held = this.#held.slice(index + this.#between.length)
      this.#named = true
    }
    const end = this.#scan.scan(this.#held)
    const written = end === null ? this.#held : this.#held.slice(0, end)
    this.#ended = end !== null
    this.#held = ""
    if (written !== "") events.push({ kind: "arguments", text: written })
    return events
  }

  end(): ReadEvent[] {
    return []
  }
}
