/** `unevaluatedProperties` and `unevaluatedItems`: what no keyword of the schema and of what it is combined with speaks of. */
import {
  type ArrayForm,
  type Goal,
  type Layer,
  type NormalForm,
  type ObjectForm,
  both,
  openLayer,
} from "./normal-form.ts"
import type { Normaliser } from "./normalise.ts"
import type { Schema } from "./references.ts"

/** Values that are listed are left out: what is evaluated in them is not known. The form has come from this schema alone, so that its layers are what has been evaluated. */
export function evaluated(to: Normaliser, schema: Schema, form: NormalForm, path: string): NormalForm {
  const { unevaluatedProperties: properties, unevaluatedItems: items } = schema
  let made = form
  if (properties !== undefined && properties !== true) {
    const goal = to.goal(properties, "narrow", `${path}/unevaluatedProperties`)
    made = {
      ...made,
      objects: made.objects.filter(({ value }) => !value).map((one) => otherProperties(one, goal)),
    }
  }
  if (items !== undefined && items !== true) {
    const goal = to.goal(items, "narrow", `${path}/unevaluatedItems`)
    made = { ...made, arrays: made.arrays.filter(({ value }) => !value).map((one) => otherItems(one, goal)) }
  }
  return made
}

function otherProperties(form: ObjectForm, goal: Goal): ObjectForm {
  const layers = form.layers.filter(({ evaluates }) => evaluates)
  if (layers.some(({ additionalGiven }) => additionalGiven)) return form
  const layer: Layer = {
    ...openLayer,
    properties: new Map(layers.flatMap(({ properties }) => [...properties.keys()].map((name) => [name, []]))),
    patterns: layers.flatMap(({ patterns }) => patterns.map(({ pattern }) => ({ pattern, goal: [] }))),
    additional: goal,
    additionalGiven: true,
  }
  return { ...form, layers: [...form.layers, layer] }
}

function otherItems(form: ArrayForm, goal: Goal): ArrayForm {
  if (form.restGiven) return form
  const prefix = form.prefix.map((one, index) => (index < form.evaluated ? one : both(one, goal)))
  return { ...form, prefix, rest: both(form.rest, goal), restGiven: true }
}
