/** The name of a question set where a request names a model: `set:NAME`, `set:NAME@7`, `set:NAME@production`. */
import { Fault } from "../../contract/errors.ts"

export interface SetReference {
  readonly name: string
  /** A version's number or a label; null: the published version, or the latest where none is. */
  readonly version: string | null
}

const prefix = "set:"
const form = /^set:([a-z0-9][a-z0-9._-]{0,63})(?:@([1-9][0-9]{0,8}|[a-z][a-z0-9._-]{0,63}))?$/

export const isSetReference = (model: string): boolean => model.startsWith(prefix)

/** Throws Fault `unknown_model` for what cannot be the name of a set. */
export function parseSetReference(model: string): SetReference {
  const [, name, version = null] = form.exec(model) ?? []
  if (name === undefined) throw unknownSet(model)
  return { name, version }
}

export const unknownSet = (model: string): Fault =>
  new Fault(
    "unknown_model",
    `Cannot classify: the organization has no question set or version ${JSON.stringify(model.slice(0, 150))}`,
    { param: "model" },
  )
