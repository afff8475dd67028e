/** Writes the lists of a form: what stands at each place, how many there are, what they contain and that none is there twice. */
import { type Rule, all, any, named, repeat, text } from "./grammar.ts"
import { SchemaRefusal } from "./budget.ts"
import type { Emitter } from "./emit.ts"
import { comma } from "./literal-texts.ts"
import { type ArrayForm, type Goal, both } from "./normal-form.ts"
import { partition } from "./partition.ts"

const ITEMS_MAX = 256
const UNIQUE_ITEMS_MAX = 32

export function emitArray(emitter: Emitter, form: ArrayForm): Rule {
  if (form.value) return text(JSON.stringify(form.value))
  const placed = placeContained(emitter, form)
  if (!placed) return any()
  if (placed.min > ITEMS_MAX)
    throw new SchemaRefusal(`a list needs ${placed.min} items; at most ${ITEMS_MAX} can be written`)
  return placed.unique && placed.max > 1 ? uniqueItems(emitter, placed) : items(emitter, placed)
}

/** What a list must contain stands first, or after its first items where these do not match. Null when it has no place. */
function placeContained(emitter: Emitter, form: ArrayForm): ArrayForm | null {
  const { to } = emitter
  const { contains } = form
  if (contains.length === 0) return form
  const needed = contains.reduce((sum, { min }) => sum + min, 0)
  if (needed > ITEMS_MAX) return null
  const at = (index: number): Goal => form.prefix[index] ?? form.rest
  for (let start = 0; start <= form.prefix.length; start++) {
    const length = Math.max(form.prefix.length, start + needed)
    if (length > form.max && start + needed > form.max) continue
    const wanted = contains.flatMap(({ goal, min }) => Array.from({ length: min }, () => goal))
    const prefix = Array.from({ length }, (_, index) => {
      const given = wanted[index - start] ?? []
      // Whatever stands for one of several must not count for another that has a bound.
      const others = contains
        .filter((one) => one.max < Infinity && one.goal !== given)
        .reduce<Goal>((goal, one) => both(goal, one.not), [])
      return both(both(at(index), given), others)
    })
    if (prefix.slice(0, start + needed).some((goal) => to.isImpossible(goal))) continue
    const rest = contains
      .filter(({ max }) => max < Infinity)
      .reduce<Goal>((goal, one) => both(goal, one.not), form.rest)
    const exact = contains.every(({ min, max }) => min <= max)
    return exact ? { ...form, prefix, rest, min: Math.max(form.min, start + needed), contains: [] } : null
  }
  return null
}

function items(emitter: Emitter, form: ArrayForm): Rule {
  const { to } = emitter
  const { prefix, rest, min } = form
  const stop = prefix.findIndex((goal) => to.isImpossible(goal))
  const reach = stop >= 0 ? stop : to.isImpossible(rest) ? prefix.length : Infinity
  const max = Math.min(form.max, reach, Math.max(ITEMS_MAX, prefix.length))
  if (min > max) return any()
  const base = emitter.fresh("l")
  const close = text("]")
  const fixed = Math.min(prefix.length, max)
  for (let index = fixed; index >= 0; index--) {
    const ended = index >= min ? [close] : []
    const goal = prefix[index]
    const written =
      goal && index < fixed
        ? [all(...comma(index > 0), emitter.value(goal), named(`${base}-${index + 1}`))]
        : index < max
          ? [all(...comma(index > 0), ...open(emitter, rest, Math.max(0, min - index), max - index), close)]
          : []
    emitter.define(`${base}-${index}`, any(...ended, ...written))
  }
  return all(text("["), named(`${base}-0`))
}

/** At least one item; the first has no comma of its own. */
function open(emitter: Emitter, goal: Goal, min: number, max: number): Rule[] {
  const item = emitter.value(goal)
  return [item, repeat(all(...comma(true), item), Math.max(0, min - 1), max - 1)]
}

/** Items that are told apart stand in one order, each of them once at most. */
function uniqueItems(emitter: Emitter, form: ArrayForm): Rule {
  const { to } = emitter
  const { prefix, min } = form
  if (prefix.length > 0) return uniquePrefix(emitter, form)
  const parts = to.isImpossible(form.rest) ? [] : partition(to, to.form(form.rest))
  const max = Math.min(form.max, parts.length, UNIQUE_ITEMS_MAX)
  if (min > max) throw new SchemaRefusal(`uniqueItems with at least ${min} items cannot be enforced here`)
  const counted = form.max < parts.length ? max : Math.max(1, min)
  const base = emitter.fresh("u")
  const place = (index: number, count: number): string => `${base}-${index}-${count}`
  for (let index = parts.length; index >= 0; index--)
    for (let count = 0; count <= Math.min(index, counted); count++) {
      const part = parts[index]
      const item = `${base}-${index}`
      if (part && !emitter.rules.has(item)) emitter.define(item, emitter.form(part))
      const written =
        part && (count < form.max || counted < form.max)
          ? [all(...comma(count > 0), named(item), named(place(index + 1, Math.min(count + 1, counted))))]
          : []
      const skipped = part ? [named(place(index + 1, count))] : count >= min ? [text("]")] : []
      emitter.define(place(index, count), any(...written, ...skipped))
    }
  return all(text("["), named(place(0, 0)))
}

/** With places that have schemas of their own: as many as certainly differ from each other. */
function uniquePrefix(emitter: Emitter, form: ArrayForm): Rule {
  const { to } = emitter
  const goals = [...form.prefix, form.rest]
  let length = 1
  const differs = (index: number): boolean => {
    to.budget.spend(4 * index)
    return goals.slice(0, index).every((goal) => to.isImpossible(both(goal, goals[index] ?? [])))
  }
  while (length < form.prefix.length && differs(length)) length++
  if (length < form.min)
    throw new SchemaRefusal("uniqueItems cannot be enforced for items with schemas of their own")
  return items(emitter, { ...form, max: Math.min(form.max, length) })
}
