/** Writes automata as rules: one for each state that several others lead to, the others inside these. */
import { type Rule, all, any, named, text } from "./grammar.ts"
import type { Automaton, Edge } from "./automaton.ts"
import type { Emitter } from "./emit.ts"
import { type Reduced, reduced } from "./reduce.ts"

/** How the characters of an edge are written; what follows the last of them. */
export interface Writing {
  readonly edge: (edge: Edge) => readonly Rule[]
  readonly end: Rule
}

/** States written inside one rule, so that rules do not become deep. */
const INSIDE_MAX = 12

export class AutomatonWriter {
  readonly #emitter: Emitter
  readonly #automaton: Automaton
  readonly #stateOf: readonly number[]
  readonly #writing: Writing
  readonly #base: string
  readonly #entries: Int32Array

  constructor(emitter: Emitter, { automaton, stateOf }: Reduced, writing: Writing) {
    this.#emitter = emitter
    this.#automaton = automaton
    this.#stateOf = stateOf
    this.#writing = writing
    this.#base = emitter.fresh("a")
    this.#entries = new Int32Array(automaton.edges.length)
    for (const edges of automaton.edges)
      for (const to of new Set(edges.map(([, , target]) => target)))
        this.#entries[to] = (this.#entries[to] ?? 0) + 1
  }

  /** What may be read from a state of the automaton that was given. */
  from(state: number): Rule {
    const first = this.#stateOf[state] ?? 0
    const waiting = [first]
    const made = new Map<string, Rule>()
    for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
      const name = this.#place(next)
      if (!this.#emitter.rules.has(name) && !made.has(name)) made.set(name, this.#rule(next, 0, waiting))
    }
    for (const [name, rule] of [...made].toReversed()) this.#emitter.define(name, rule)
    return named(this.#place(first))
  }

  #place(state: number): string {
    return `${this.#base}-${state}`
  }

  #rule(state: number, depth: number, waiting: number[]): Rule {
    const edges = this.#automaton.edges[state] ?? []
    this.#emitter.to.budget.spend(1 + edges.length)
    const byTarget = new Map<number, Edge[]>()
    for (const edge of edges) {
      const group = byTarget.get(edge[2])
      if (group) group.push(edge)
      else byTarget.set(edge[2], [edge])
    }
    const options: Rule[] = this.#automaton.accepting[state] === true ? [this.#writing.end] : []
    for (const [to, group] of byTarget)
      options.push(sequence(this.#read(group), this.#next(to, depth, waiting)))
    return options.length === 1 && options[0] ? options[0] : any(...options)
  }

  #read(edges: readonly Edge[]): Rule {
    return joinedSets(edges.flatMap((edge) => this.#writing.edge(edge)))
  }

  #next(to: number, depth: number, waiting: number[]): Rule {
    const isInside = this.#entries[to] === 1 && to !== 0 && depth < INSIDE_MAX
    if (isInside) return this.#rule(to, depth + 1, waiting)
    waiting.push(to)
    return named(this.#place(to))
  }
}

export const reducedWriter = (emitter: Emitter, automaton: Automaton, writing: Writing): AutomatonWriter =>
  new AutomatonWriter(emitter, reduced(automaton), writing)

/** Texts that follow each other are one. */
function sequence(first: Rule, rest: Rule): Rule {
  const [next = rest, ...others] = rest.kind === "all" ? rest.parts : [rest]
  if (first.kind === "text" && next.kind === "text") {
    const joined = text(first.text + next.text)
    return others.length === 0 ? joined : all(joined, ...others)
  }
  return all(first, next, ...others)
}

export function joinedSets(rules: readonly Rule[]): Rule {
  const ranges = rules.flatMap((rule) => (rule.kind === "set" ? rule.ranges : []))
  const others = rules.filter(({ kind }) => kind !== "set")
  const [only] = ranges
  if (only && ranges.length === 1 && only[0] === only[1] && others.length === 0)
    return text(String.fromCodePoint(only[0]))
  const sets: Rule[] = ranges.length === 0 ? [] : [{ kind: "set", negated: false, ranges }]
  return sets.length + others.length === 1 ? (sets[0] ?? others[0] ?? any()) : any(...sets, ...others)
}
