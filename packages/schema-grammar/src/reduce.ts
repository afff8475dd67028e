/** Makes automata smaller: states from which the same texts are accepted become one, as far as one pass from the ends shows. */
import type { Automaton, Edge } from "./automaton.ts"

export interface Reduced {
  readonly automaton: Automaton
  /** The state that now stands for each state of the automaton that was reduced. */
  readonly stateOf: readonly number[]
}

/** The start is still the first state. Two states in cycles that are equal only by each other stay two. */
export function reduced(given: Automaton): Reduced {
  const { edges, accepting } = given
  const kept: number[] = []
  /** By state; those that are still open stand for themselves, by numbers below zero. */
  const classes = new Int32Array(edges.length).fill(-1)
  const known = new Map<string, number>()
  const classOf = (target: number, of: number): number =>
    target === of ? -1 : classes[target] === -1 ? -2 - target : (classes[target] ?? 0)
  for (const state of postOrder(given)) {
    const list = joined(edges[state] ?? [], (target) => classOf(target, state))
    let key = accepting[state] === true ? "+" : "-"
    for (const [low, high, to] of list) key += `${low},${high},${to};`
    const same = known.get(key)
    if (same === undefined) {
      known.set(key, kept.length)
      classes[state] = kept.length
      kept.push(state)
    } else classes[state] = same
  }
  const start = classes[0] ?? 0
  // The start comes last in post-order: it changes places with the first.
  const numberOf = (one: number): number => (one === start ? 0 : one === 0 ? start : one)
  const states = kept.map((_, index) => kept[numberOf(index)] ?? 0)
  const stateOf = Array.from(classes, (one) => (one === -1 ? -1 : numberOf(one)))
  return {
    automaton: {
      edges: states.map((state) => joined(edges[state] ?? [], (target) => stateOf[target] ?? 0)),
      accepting: states.map((state) => accepting[state] === true),
    },
    stateOf,
  }
}

/** Neighbouring characters that lead to the same state are one edge. */
function joined(edges: readonly Edge[], classOf: (target: number) => number): Edge[] {
  const made: [number, number, number][] = []
  for (const [low, high, to] of edges) {
    const target = classOf(to)
    const last = made.at(-1)
    if (last && last[2] === target && last[1] === low - 1) last[1] = high
    else made.push([low, high, target])
  }
  return made
}

/** Every state that the start leads to, after those that it leads to, except in cycles. */
function postOrder({ edges }: Automaton): number[] {
  const order: number[] = []
  const next = new Int32Array(edges.length).fill(-1)
  const path = [0]
  next[0] = 0
  for (let state = path.at(-1); state !== undefined; state = path.at(-1)) {
    const list = edges[state] ?? []
    let at = next[state] ?? 0
    while (at < list.length && next[list[at]?.[2] ?? 0] !== -1) at++
    next[state] = at
    const target = list[at]?.[2]
    if (target === undefined) {
      order.push(state)
      path.pop()
    } else {
      next[target] = 0
      path.push(target)
    }
  }
  return order
}
