/** Finite automata over code points: what patterns, formats, lengths and excluded values are, so that they can be combined. */
import { type Budget, SchemaRefusal } from "./budget.ts"

export type Range = readonly [low: number, high: number]
/** Characters from `low` to `high` lead to the state `to`. */
export type Edge = readonly [low: number, high: number, to: number]

/** Deterministic: the edges of a state are sorted and disjoint. The first state is the start. */
export interface Automaton {
  readonly edges: readonly (readonly Edge[])[]
  readonly accepting: readonly boolean[]
  /** The same texts by another automaton: characters from these ranges in turn, then on from one of its states. */
  readonly tail?: {
    readonly read: readonly (readonly Range[])[]
    readonly of: Automaton
    readonly state: number
  }
}

const CODE_MAX = 0x10ffff
const STATES_MAX = 4000
/** Every character that a JSON text can hold: halves of surrogate pairs are none. */
export const everything: readonly Range[] = [
  [0, 0xd7ff],
  [0xe000, CODE_MAX],
]

/** Sorted, without overlaps and gaps of nothing. */
export function tidyRanges(ranges: readonly Range[]): Range[] {
  const sorted = ranges.toSorted(([a], [b]) => a - b)
  const merged: [number, number][] = []
  for (const [low, high] of sorted) {
    const last = merged.at(-1)
    if (last && low <= last[1] + 1) last[1] = Math.max(last[1], high)
    else merged.push([low, high])
  }
  return merged
}

export function rangesWithout(ranges: readonly Range[], excluded: readonly Range[]): Range[] {
  const left: Range[] = []
  const holes = tidyRanges(excluded)
  for (const [from, high] of tidyRanges(ranges)) {
    let low = from
    for (const [start, end] of holes) {
      if (end < low || start > high) continue
      if (start > low) left.push([low, start - 1])
      low = end + 1
    }
    if (low <= high) left.push([low, high])
  }
  return left
}

/** What a pattern is first turned into: edges that read nothing, and edges that only hold at one end of the text. */
export class Nfa {
  readonly silent: number[][] = []
  readonly atStart: number[][] = []
  readonly atEnd: number[][] = []
  readonly edges: Edge[][] = []
  readonly #budget: Budget

  constructor(budget: Budget) {
    this.#budget = budget
  }

  state(): number {
    this.#budget.spend()
    this.silent.push([])
    this.atStart.push([])
    this.atEnd.push([])
    this.edges.push([])
    return this.edges.length - 1
  }

  join(from: number, to: number): void {
    this.silent[from]?.push(to)
  }

  read(from: number, ranges: readonly Range[], to: number): void {
    for (const [low, high] of ranges) this.edges[from]?.push([low, high, to])
  }

  /** Puts an automaton between two states. */
  embed(from: number, automaton: Automaton, to: number): void {
    const offset = this.edges.length
    for (const _ of automaton.edges) this.state()
    this.join(from, offset)
    automaton.edges.forEach((edges, state) => {
      for (const [low, high, target] of edges) this.edges[offset + state]?.push([low, high, offset + target])
      if (automaton.accepting[state]) this.join(offset + state, to)
    })
  }

  /** The deterministic automaton of the texts that lead from one state to another. */
  determinise(from: number, to: number, startsText: boolean): Automaton {
    const numbers = new Map<string, number>()
    const sets: { readonly states: readonly number[]; readonly first: boolean }[] = []
    const numberOf = (seeds: readonly number[], first: boolean): number => {
      const states = this.#closure(seeds, first, false)
      const key = `${first ? "^" : ""}${states.join(",")}`
      const known = numbers.get(key)
      if (known !== undefined) return known
      if (sets.length >= STATES_MAX) throw new SchemaRefusal("a pattern is too complex")
      sets.push({ states, first })
      numbers.set(key, sets.length - 1)
      return sets.length - 1
    }
    numberOf([from], startsText)
    const edges: Edge[][] = []
    const accepting: boolean[] = []
    for (let index = 0; index < sets.length; index++) {
      const { states, first } = sets[index] ?? { states: [], first: false }
      accepting.push(this.#closure(states, first, true).includes(to))
      const read = states.flatMap((state) => this.edges[state] ?? [])
      edges.push(this.#combine(read, (targets) => numberOf(targets, false)))
    }
    return trim({ edges, accepting })
  }

  #closure(seeds: readonly number[], first: boolean, last: boolean): number[] {
    const seen = new Set(seeds)
    const waiting = [...seeds]
    for (let state = waiting.pop(); state !== undefined; state = waiting.pop()) {
      this.#budget.spend()
      const next = [
        ...(this.silent[state] ?? []),
        ...(first ? (this.atStart[state] ?? []) : []),
        ...(last ? (this.atEnd[state] ?? []) : []),
      ]
      for (const target of next)
        if (!seen.has(target)) {
          seen.add(target)
          waiting.push(target)
        }
    }
    return [...seen].toSorted((a, b) => a - b)
  }

  /** Cuts overlapping edges into disjoint ones, from the lowest character to the highest. */
  #combine(read: readonly Edge[], numberOf: (targets: number[]) => number): Edge[] {
    this.#budget.spend(2 + read.length)
    const changes = read.flatMap(([low, high, to]) => [
      { at: low, to, by: 1 },
      { at: high + 1, to, by: -1 },
    ])
    changes.sort((a, b) => a.at - b.at)
    const active = new Map<number, number>()
    const combined: [number, number, number][] = []
    changes.forEach(({ at, to, by }, index) => {
      const count = (active.get(to) ?? 0) + by
      if (count === 0) active.delete(to)
      else active.set(to, count)
      const next = changes[index + 1]?.at ?? at
      if (next === at || active.size === 0) return
      const target = numberOf([...active.keys()])
      const last = combined.at(-1)
      if (last && last[2] === target && last[1] === at - 1) last[1] = next - 1
      else combined.push([at, next - 1, target])
    })
    return combined
  }
}

/** Without the states from which no text is accepted; an automaton that accepts nothing has one state and no edges. */
function trim(automaton: Automaton): Automaton {
  const { edges, accepting } = automaton
  const sources = edges.map((): number[] => [])
  edges.forEach((list, state) => {
    for (const [, , to] of list) sources[to]?.push(state)
  })
  const alive = new Set<number>()
  const waiting = accepting.flatMap((is, state) => (is ? [state] : []))
  for (let state = waiting.pop(); state !== undefined; state = waiting.pop()) {
    if (alive.has(state)) continue
    alive.add(state)
    waiting.push(...(sources[state] ?? []))
  }
  if (!alive.has(0)) return { edges: [[]], accepting: [false] }
  if (alive.size === edges.length) return automaton
  const kept = edges.map((_, state) => state).filter((state) => alive.has(state))
  const renumbered = new Map(kept.map((state, index) => [state, index]))
  return {
    edges: kept.map((state) =>
      (edges[state] ?? []).flatMap(([low, high, to]): Edge[] => {
        const target = renumbered.get(to)
        return target === undefined ? [] : [[low, high, target]]
      }),
    ),
    accepting: kept.map((state) => accepting[state] === true),
  }
}

export const isEmpty = (automaton: Automaton): boolean =>
  !automaton.tail && automaton.accepting[0] !== true && (automaton.edges[0]?.length ?? 0) === 0

/** Accepts every text. */
export const isUniversal = ({ edges, accepting, tail }: Automaton): boolean =>
  !tail &&
  edges.length === 1 &&
  accepting[0] === true &&
  edges[0]?.length === everything.length &&
  everything.every(([low, high], index) => edges[0]?.[index]?.[0] === low && edges[0][index][1] === high)

/** The characters that every text of the automaton is made of, where it says nothing else but how many there are at least. */
export function repeatedSet({ edges, accepting, tail }: Automaton): { ranges: Range[]; min: 0 | 1 } | null {
  if (tail || edges.length > 2) return null
  const last = edges.length - 1
  const ranges = (edges[last] ?? []).map(([low, high]): Range => [low, high])
  const isLoop = edges.every(
    (list) =>
      list.length === ranges.length &&
      list.every(([low, high, to], at) => to === last && low === ranges[at]?.[0] && high === ranges[at]?.[1]),
  )
  if (!isLoop || accepting[last] !== true) return null
  return { ranges, min: accepting[0] === true ? 0 : 1 }
}

/** The texts that both accept. */
export function intersection(a: Automaton, b: Automaton, budget: Budget): Automaton {
  const numbers = new Map<number, number>()
  const pairs: (readonly [number, number])[] = []
  const numberOf = (left: number, right: number): number => {
    const key = left * b.edges.length + right
    const known = numbers.get(key)
    if (known !== undefined) return known
    if (pairs.length >= STATES_MAX) throw new SchemaRefusal("its texts are too complex")
    numbers.set(key, pairs.length)
    pairs.push([left, right])
    return pairs.length - 1
  }
  numberOf(0, 0)
  const edges: Edge[][] = []
  const accepting: boolean[] = []
  for (let index = 0; index < pairs.length; index++) {
    const [left, right] = pairs[index] ?? [0, 0]
    accepting.push(a.accepting[left] === true && b.accepting[right] === true)
    edges.push(crossed(a.edges[left] ?? [], b.edges[right] ?? [], numberOf, budget))
  }
  return trim({ edges, accepting })
}

function crossed(
  left: readonly Edge[],
  right: readonly Edge[],
  numberOf: (left: number, right: number) => number,
  budget: Budget,
): Edge[] {
  const made: Edge[] = []
  let i = 0
  let j = 0
  for (;;) {
    const [a, b] = [left[i], right[j]]
    if (!a || !b) return made
    budget.spend()
    const low = Math.max(a[0], b[0])
    const high = Math.min(a[1], b[1])
    if (low <= high) made.push([low, high, numberOf(a[2], b[2])])
    if (a[1] < b[1]) i++
    else j++
  }
}

/** The texts that it does not accept. */
export function complement({ edges, accepting }: Automaton, budget: Budget): Automaton {
  const sink = edges.length
  const completed = edges.map((list) => {
    budget.spend(1 + list.length)
    return withGaps(list, sink)
  })
  return trim({
    edges: [...completed, withGaps([], sink)],
    accepting: [...accepting.map((is) => !is), true],
  })
}

/** Every character that no edge reads leads to `sink`. */
function withGaps(edges: readonly Edge[], sink: number): Edge[] {
  const all: Edge[] = []
  let index = 0
  let low = 0
  for (const [from, until] of everything) {
    low = Math.max(low, from)
    for (let edge = edges[index]; edge && edge[0] <= until; edge = edges[++index]) {
      if (edge[0] > low) all.push([low, edge[0] - 1, sink])
      all.push(edge)
      low = Math.max(low, edge[1] + 1)
    }
    if (low <= until) all.push([low, until, sink])
  }
  return all
}

/** Exactly these texts. */
export function literals(texts: readonly string[], budget: Budget): Automaton {
  const edges: Map<number, number>[] = [new Map()]
  const accepting: boolean[] = [false]
  for (const text of texts) {
    let state = 0
    for (const character of text) {
      budget.spend()
      const code = character.codePointAt(0) ?? 0
      const known = edges[state]?.get(code)
      if (known !== undefined) {
        state = known
        continue
      }
      edges[state]?.set(code, edges.length)
      state = edges.length
      edges.push(new Map())
      accepting.push(false)
    }
    accepting[state] = true
  }
  return {
    edges: edges.map((map) =>
      [...map].map(([code, to]): Edge => [code, code, to]).toSorted(([a], [b]) => a - b),
    ),
    accepting,
  }
}

const step = (to: number): Edge[] => everything.map(([low, high]): Edge => [low, high, to])

/** Texts of so many characters; null leaves the end open. */
export function ofLength(min: number, max: number | null): Automaton {
  const last = max ?? min
  if (last >= STATES_MAX) throw new SchemaRefusal("its texts are too long")
  const open = max === null
  return {
    edges: Array.from({ length: last + 1 }, (_, state) =>
      state < last ? step(state + 1) : open ? step(state) : [],
    ),
    accepting: Array.from({ length: last + 1 }, (_, state) => state >= min),
  }
}

export function accepts({ edges, accepting }: Automaton, text: string): boolean {
  let state = 0
  for (const character of text) {
    const code = character.codePointAt(0) ?? 0
    const edge = edges[state]?.find(([low, high]) => code >= low && code <= high)
    if (!edge) return false
    state = edge[2]
  }
  return accepting[state] === true
}

/** The fewest and the most characters of an accepted text; the most is Infinity where there is no bound. */
export function lengthsOf(automaton: Automaton): Lengths {
  const known = lengthsKnown.get(automaton)
  if (known) return known
  const lengths = { least: leastLength(automaton), most: mostLength(automaton) }
  lengthsKnown.set(automaton, lengths)
  return lengths
}

interface Lengths {
  readonly least: number
  readonly most: number
}

const lengthsKnown = new WeakMap<Automaton, Lengths>()

function leastLength({ edges, accepting }: Automaton): number {
  const lengths: (number | undefined)[] = [0]
  const states = [0]
  for (const state of states) {
    const length = lengths[state] ?? 0
    if (accepting[state]) return length
    for (const [, , to] of edges[state] ?? [])
      if (lengths[to] === undefined) {
        lengths[to] = length + 1
        states.push(to)
      }
  }
  return Infinity
}

/** The longest path; every state of a trimmed automaton leads to an accepting one, so any cycle makes it endless. */
function mostLength({ edges }: Automaton): number {
  const lengths = new Map<number, number>()
  const open = new Set<number>()
  const waiting: number[] = [0]
  while (waiting.length > 0) {
    const state = waiting.at(-1) ?? 0
    const targets = (edges[state] ?? []).map(([, , to]) => to)
    const missing = lengths.has(state) ? undefined : targets.find((to) => !lengths.has(to))
    if (missing !== undefined) {
      open.add(state)
      if (open.has(missing)) return Infinity
      waiting.push(missing)
      continue
    }
    lengths.set(state, Math.max(0, ...targets.map((to) => 1 + (lengths.get(to) ?? 0))))
    open.delete(state)
    waiting.pop()
  }
  return lengths.get(0) ?? 0
}
