/** Writes normal forms as the rules of a grammar. */
import { type Rule, all, any, maybe, named, notSet, repeat, set, text } from "./grammar.ts"
import { type Automaton, type Edge, type Range, isEmpty, repeatedSet } from "./automaton.ts"
import { SchemaRefusal } from "./budget.ts"
import { emitArray } from "./emit-array.ts"
import { emitObject } from "./emit-object.ts"
import { type Goal, type NormalForm, type StringForm, anyArray, anyObject, anything } from "./normal-form.ts"
import type { Normaliser } from "./normalise.ts"
import { type AutomatonWriter, type Writing, joinedSets, reducedWriter } from "./emit-automaton.ts"
import { type NumberForm, formKey, isPlain, numberAutomaton } from "./number-form.ts"
import { textOf } from "./decimal.ts"
import { literalTexts, space } from "./literal-texts.ts"
import { sized } from "./partition.ts"

/** llama.cpp refuses grammars with more than about 2000 repetitions of one part. */
const STRING_CHARACTERS_MAX = 1000
const MAP_ENTRIES_MAX = 32
const ANY_DEPTH_MAX = 4
const RULES_MAX = 9000

const hex = set(["0", "9"], ["a", "f"], ["A", "F"])
const digit = set(["0", "9"])
const escape = all(
  text("\\"),
  set(['"', '"'], ["\\", "\\"], ["/", "/"], ["b", "b"], ["f", "f"], ["n", "n"], ["r", "r"], ["t", "t"]),
)
/** Surrogates in escapes could be left alone, so only escapes without them are written. */
const character = any(
  notSet(['"', '"'], ["\\", "\\"], [0, 0x1f], [0x7f, 0x7f], [0xd800, 0xdfff]),
  escape,
  all(text("\\u"), set(["0", "9"], ["a", "c"]), hex, hex, hex),
)
const integer = all(maybe(text("-")), any(text("0"), all(set(["1", "9"]), repeat(digit, 0, 14))))
const number = all(
  integer,
  maybe(all(text("."), repeat(digit, 1, 15))),
  maybe(all(set(["e", "e"], ["E", "E"]), maybe(set(["+", "+"], ["-", "-"])), repeat(digit, 1, 2))),
)

export class Emitter {
  readonly rules = new Map<string, Rule>()
  readonly to: Normaliser
  /** Each is written in one way only: as a text in quotes, or as a number. */
  readonly #automata = new Map<Automaton, AutomatonWriter>()
  readonly #forms = new Map<object, string>()
  readonly #numbers = new Map<string, Rule>()
  readonly #sets = new Map<string, string>()
  #lastName = 0

  constructor(to: Normaliser) {
    this.to = to
  }

  /** The rule of a goal, which may stand in its own parts. */
  value(goal: Goal): Rule {
    if (goal.length === 0) return this.anyValue(ANY_DEPTH_MAX)
    const ids = goal.map(({ id }) => id).toSorted((a, b) => a - b)
    const name = `v${ids.join("-")}`
    if (!this.rules.has(name)) {
      this.#enclosing(name, () => this.form(this.to.form(goal)))
    }
    return named(name)
  }

  form(form: NormalForm): Rule {
    if (form === anything) return this.anyValue(ANY_DEPTH_MAX)
    return any(
      ...(form.hasNull ? [text("null")] : []),
      ...form.booleans.map((one) => text(String(one))),
      ...form.numbers.map((one) => this.number(one)),
      ...form.strings.map((one) => this.string(one)),
      ...form.arrays.map((one) =>
        one === anyArray ? this.#anyArray(ANY_DEPTH_MAX) : this.#once(one, () => emitArray(this, one)),
      ),
      ...form.objects.map((one) =>
        one === anyObject ? this.#anyObject(ANY_DEPTH_MAX) : this.#once(one, () => emitObject(this, one)),
      ),
    )
  }

  /** A form may stand in its own parts. */
  #once(form: object, write: () => Rule): Rule {
    const known = this.#forms.get(form)
    if (known !== undefined) return named(known)
    const name = this.fresh("f")
    this.#forms.set(form, name)
    this.#enclosing(name, write)
    return named(name)
  }

  /** A rule whose parts may need it: it is there before them, and comes after them in the end. */
  #enclosing(name: string, write: () => Rule): void {
    this.define(name, text(""))
    const rule = write()
    this.rules.delete(name)
    this.rules.set(name, rule)
  }

  number(form: NumberForm): Rule {
    if (form.among) return literalTexts(form.among.map(textOf))
    if (isPlain(form)) return this.#shared(form.whole ? "integer" : "number", form.whole ? integer : number)
    const key = formKey(form)
    const known = this.#numbers.get(key)
    if (known) return known
    const made = this.automaton(numberAutomaton(form, this.to.budget), asNumber)
    this.#numbers.set(key, made)
    return made
  }

  string({ min, max, automaton, among }: StringForm): Rule {
    if (among) return literalTexts(among.map((one) => JSON.stringify(one)))
    if (!automaton) return this.plainString(min, max)
    const repeated = repeatedSet(automaton)
    if (repeated) return this.#repeatedCharacters(repeated.ranges, Math.max(min, repeated.min), max)
    return all(text('"'), this.quoted(sized({ min, max, automaton, among }, this.to.budget)))
  }

  #repeatedCharacters(ranges: readonly Range[], min: number, max: number): Rule {
    checkLength(min)
    const one = joinedSets(ranges.flatMap(([low, high]) => quotedEdge([low, high, 0])))
    const key = JSON.stringify(ranges)
    const name = this.#sets.get(key) ?? this.fresh("s")
    this.#sets.set(key, name)
    const most = Math.min(max, STRING_CHARACTERS_MAX)
    return all(text('"'), repeat(this.#shared(name, one), min, most), text('"'))
  }

  /** The rest of a JSON string, with its closing quote. */
  quoted(automaton: Automaton): Rule {
    return this.automaton(automaton, asText)
  }

  plainString(min: number, max: number): Rule {
    checkLength(min)
    const most = Math.min(max, STRING_CHARACTERS_MAX)
    return this.#shared(`string-${min}-${most}`, all(text('"'), this.characters(min, most), text('"')))
  }

  characters(min: number, max: number): Rule {
    return repeat(this.#shared("character", character), min, max)
  }

  automaton(automaton: Automaton, writing: Writing): Rule {
    if (isEmpty(automaton)) return any()
    const { tail } = automaton
    if (!tail) return this.#writer(automaton, writing).from(0)
    const sets = tail.read.map((ranges) =>
      joinedSets(ranges.flatMap(([low, high]) => writing.edge([low, high, 0]))),
    )
    return all(...sets, this.#writer(tail.of, writing).from(tail.state))
  }

  #writer(automaton: Automaton, writing: Writing): AutomatonWriter {
    const known = this.#automata.get(automaton)
    if (known) return known
    const made = reducedWriter(this, automaton, writing)
    this.#automata.set(automaton, made)
    return made
  }

  define(name: string, rule: Rule): void {
    this.to.budget.spend(8)
    if (this.rules.size >= RULES_MAX) throw new SchemaRefusal("it is too complex: its grammar is too large")
    this.rules.set(name, rule)
  }

  fresh(prefix: string): string {
    return `${prefix}${++this.#lastName}`
  }

  /** Nested to a bound, so that a model that never closes its brackets comes to an end. */
  anyValue(depth: number): Rule {
    const name = `value-${depth}`
    if (this.rules.has(name)) return named(name)
    const scalar = any(
      this.plainString(0, Infinity),
      this.#shared("number", number),
      text("true"),
      text("false"),
      text("null"),
    )
    const rule = depth > 0 ? any(scalar, this.#anyArray(depth), this.#anyObject(depth)) : scalar
    this.define(name, rule)
    return named(name)
  }

  #anyArray(depth: number): Rule {
    return separated(text("["), this.anyValue(depth - 1), text("]"), MAP_ENTRIES_MAX)
  }

  #anyObject(depth: number): Rule {
    const entry = all(this.plainString(1, 100), text(":"), space, this.anyValue(depth - 1))
    return separated(text("{"), entry, text("}"), MAP_ENTRIES_MAX)
  }

  anyObject(): Rule {
    return this.#anyObject(ANY_DEPTH_MAX)
  }

  #shared(name: string, rule: Rule): Rule {
    if (!this.rules.has(name)) this.define(name, rule)
    return named(name)
  }
}

function checkLength(min: number): void {
  if (min > STRING_CHARACTERS_MAX)
    throw new SchemaRefusal(`a text needs ${min} characters; at most ${STRING_CHARACTERS_MAX} can be written`)
}

function separated(open: Rule, item: Rule, close: Rule, max: number): Rule {
  return all(open, maybe(all(item, repeat(all(text(","), space, item), 0, max - 1))), close)
}

const asNumber: Writing = {
  edge: ([low, high]) => [{ kind: "set", negated: false, ranges: [[low, high]] }],
  end: text(""),
}
const asText: Writing = { edge: quotedEdge, end: text('"') }

/** Characters that cannot stand for themselves in a JSON string, with how they are written. */
const escaped: readonly (readonly [number, string])[] = [
  [0x22, '\\"'],
  [0x5c, "\\\\"],
  [0x08, "\\b"],
  [0x09, "\\t"],
  [0x0a, "\\n"],
  [0x0c, "\\f"],
  [0x0d, "\\r"],
]

const within = (code: number, low: number, high: number): boolean => code >= low && code <= high

/** As the characters are written inside a JSON string. */
function quotedEdge([low, high]: Edge): readonly Rule[] {
  const isPlain = low >= 0x20 && high <= 0x7e && !within(0x22, low, high) && !within(0x5c, low, high)
  if (isPlain) return [{ kind: "set", negated: false, ranges: [[low, high]] }]
  const ranges: [number, number][] = []
  const plain: readonly (readonly [number, number])[] = [
    [0x20, 0x21],
    [0x23, 0x5b],
    [0x5d, 0x7e],
    [0x80, 0xd7ff],
    [0xe000, 0x10ffff],
  ]
  for (const [from, to] of plain)
    if (from <= high && to >= low) ranges.push([Math.max(from, low), Math.min(to, high)])
  const special = escaped.filter(([code]) => code >= low && code <= high).map(([, written]) => text(written))
  const written: Rule[] =
    ranges.length === 0 ? special : [{ kind: "set", negated: false, ranges }, ...special]
  if (written.length > 0) return written
  // Only control characters without a short form.
  return [text(`\\u${low.toString(16).padStart(4, "0")}`)]
}
