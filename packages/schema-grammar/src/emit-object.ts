/** Writes the objects of a form: its properties in their order, then whatever else it allows. */
import { type Rule, all, any, named, repeat, text } from "./grammar.ts"
import { type Automaton, isEmpty, literals, ofLength } from "./automaton.ts"
import type { Emitter } from "./emit.ts"
import { comma, space } from "./literal-texts.ts"
import { type Goal, type ObjectForm, anyString, both, propertyGoal } from "./normal-form.ts"
import { firstCharacters, sized } from "./partition.ts"

/** Entries beyond the named properties; an object that needs more than these is not written. */
const OTHERS_MAX = 32
/** Combinations of patterns that a name may match. */
const PATTERNS_MAX = 4
const COUNTED_MAX = 64

export function emitObject(emitter: Emitter, form: ObjectForm): Rule {
  if (form.value) return text(JSON.stringify(form.value))
  const { to } = emitter
  const listed = namesOf(form)
  to.budget.spend(listed.length * form.layers.length)
  const names = listed
    .filter((name) => to.satisfies(name, form.names))
    .map((name) => ({ name, goal: propertyGoal(form, name) }))
    .filter(({ goal }) => !to.isImpossible(goal))
  const known = new Set(names.map(({ name }) => name))
  for (const name of form.required) if (!known.has(name)) return any()
  const others = wantsOthers(form, names.length) ? otherEntries(emitter, form, listed) : []
  return new ObjectWriter(emitter, form, names, others).write()
}

interface Property {
  readonly name: string
  readonly goal: Goal
}

function namesOf({ layers, required }: ObjectForm): string[] {
  return [...new Set([...layers.flatMap(({ properties }) => [...properties.keys()]), ...required])]
}

/** An object with properties is written with these alone, unless its schema speaks of others or needs them. */
function wantsOthers({ layers, min }: ObjectForm, properties: number): boolean {
  if (properties === 0 || min > properties) return true
  return layers.some(
    ({ additional, additionalGiven, patterns, evaluates }) =>
      evaluates && ((additionalGiven && additional.length > 0) || patterns.length > 0),
  )
}

/** Names that are not among the properties, by which patterns they match, and what their values are. */
interface Others {
  readonly names: Automaton
  readonly goal: Goal
}

function otherEntries(emitter: Emitter, form: ObjectForm, excluded: readonly string[]): Others[] {
  const { to } = emitter
  const patterns = form.layers.flatMap((layer) => layer.patterns.map((one) => ({ ...one, layer })))
  const allowed = nameAutomata(emitter, form)
  const rest = excluded.length === 0 ? null : to.except(excluded)
  const found: Others[] = []
  for (const matched of combinations(patterns)) {
    const goal = form.layers.reduce<Goal>((sum, layer) => {
      const own = matched.filter((one) => one.layer === layer)
      return own.length === 0 ? both(sum, layer.additional) : own.reduce((a, b) => both(a, b.goal), sum)
    }, [])
    if (to.isImpossible(goal)) continue
    const parts = [
      ...(rest ? [rest] : []),
      ...patterns.map((one) => (matched.includes(one) ? one.pattern.automaton : to.notMatching(one.pattern))),
    ]
    for (const names of allowed) {
      const met = parts.reduce((a, b) => to.both(a, b), names)
      if (!isEmpty(met)) found.push({ names: met, goal })
    }
  }
  return found
}

/** One object, so that what is worked out from it is known again. */
const anyText = ofLength(0, null)

/** With many patterns a name matches one of them at most: fewer names, all of them right. */
function combinations<One>(all: readonly One[]): One[][] {
  if (all.length > PATTERNS_MAX) return [[], ...all.map((one) => [one])]
  return all.reduce<One[][]>((sets, one) => [...sets, ...sets.map((others) => [...others, one])], [[]])
}

function nameAutomata(emitter: Emitter, { names }: ObjectForm): Automaton[] {
  const { to } = emitter
  return to
    .form(names)
    .strings.map((form) =>
      form === anyString ? anyText : form.among ? literals(form.among, to.budget) : sized(form, to.budget),
    )
}

/** Rules for each place among the properties and each count of entries written so far, up to where it stops to matter. */
class ObjectWriter {
  readonly #emitter: Emitter
  readonly #properties: readonly Property[]
  readonly #others: readonly Others[]
  readonly #form: ObjectForm
  readonly #base: string
  readonly #countMax: number
  readonly #max: number

  constructor(
    emitter: Emitter,
    form: ObjectForm,
    properties: readonly Property[],
    others: readonly Others[],
  ) {
    this.#emitter = emitter
    this.#form = form
    this.#properties = properties
    this.#others = others
    this.#base = emitter.fresh("o")
    const possible = properties.length + (others.length > 0 ? OTHERS_MAX : 0)
    this.#max = Math.min(form.max, possible)
    const bounded = form.max < possible
    // Without bounds it only matters whether a comma is due.
    this.#countMax = Math.max(1, bounded ? this.#max : form.min <= form.required.size ? 1 : form.min)
  }

  write(): Rule {
    const { min } = this.#form
    if (min > this.#max || this.#countMax > Math.max(COUNTED_MAX, this.#properties.length)) return any()
    const counts: ReadonlySet<number>[] = [new Set([0])]
    for (let index = 0; index < this.#properties.length; index++)
      counts.push(this.#countsAfter(index, counts[index] ?? new Set()))
    for (const [index, possible] of [...counts.entries()].toReversed())
      for (const count of possible) this.#define(index, count, possible.size > 1)
    return all(text("{"), named(this.#place(0, 0)))
  }

  /** How many entries may be written before the next property. */
  #countsAfter(index: number, counts: ReadonlySet<number>): ReadonlySet<number> {
    const isRequired = this.#form.required.has(this.#properties[index]?.name ?? "")
    const written = [...counts].map((count) => Math.min(count + 1, this.#countMax))
    return new Set(isRequired ? written : [...counts, ...written])
  }

  #place(index: number, count: number): string {
    return `${this.#base}-${index}-${count}`
  }

  #define(index: number, count: number, isShared: boolean): void {
    const property = this.#properties[index]
    const entry = property && this.#propertyEntry(property, index, isShared)
    const rule = entry ? this.#property(property.name, entry, index, count) : this.#end(count)
    this.#emitter.define(this.#place(index, count), rule)
  }

  /** A rule of its own where several others contain it. */
  #propertyEntry({ name, goal }: Property, index: number, isShared: boolean): Rule {
    const place = `${this.#base}-${index}`
    if (this.#emitter.rules.has(place)) return named(place)
    const entry = all(text(`${JSON.stringify(name)}:`), space, this.#emitter.value(goal))
    if (!isShared) return entry
    this.#emitter.define(place, entry)
    return named(place)
  }

  #property(name: string, entry: Rule, index: number, count: number): Rule {
    const written = all(
      ...comma(count > 0),
      entry,
      named(this.#place(index + 1, Math.min(count + 1, this.#countMax))),
    )
    const room = count < this.#max || this.#countMax < this.#max
    const options = [
      ...(room ? [written] : []),
      ...(this.#form.required.has(name) ? [] : [named(this.#place(index + 1, count))]),
    ]
    return any(...options)
  }

  /** After the last property: what is still missing, by names that differ, then as many as fit. */
  #end(count: number): Rule {
    const missing = Math.max(0, this.#form.min - count)
    // Counts beyond those that are told apart have enough.
    const enough = this.#form.min <= this.#form.required.size && this.#countMax === 1 ? 0 : missing
    if (this.#others.length === 0) return enough > 0 ? any() : text("}")
    const due = this.#mandatory(enough)
    if (!due) return any()
    const first = count === 0
    const entries = due.map((entry, index) => all(...comma(!first || index > 0), entry))
    const left = Math.min(OTHERS_MAX, this.#form.max - count - enough)
    if (left <= 0) return all(...entries, text("}"))
    const more = all(...comma(true), this.#other())
    if (first && enough === 0) return any(text("}"), all(this.#other(), repeat(more, 0, left - 1), text("}")))
    return all(...entries, repeat(more, 0, left), text("}"))
  }

  /** Null when there are not so many names that certainly differ: they differ by their first characters. */
  #mandatory(count: number): Rule[] | null {
    if (count === 0) return []
    const found: Rule[] = []
    for (const { names, goal } of this.#others)
      for (const part of firstCharacters(names, this.#emitter.to.budget)) {
        if (found.length === count) return found
        found.push(this.#entry({ names: part, goal }))
      }
    return found.length === count ? found : null
  }

  #other(): Rule {
    const name = `${this.#base}-other`
    if (!this.#emitter.rules.has(name))
      this.#emitter.define(name, any(...this.#others.map((one) => this.#entry(one))))
    return named(name)
  }

  #entry({ names, goal }: Others): Rule {
    return all(text('"'), this.#emitter.quoted(names), text(":"), space, this.#emitter.value(goal))
  }
}
