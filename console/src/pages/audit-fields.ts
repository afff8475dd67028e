/** Two views of a resource, before and after a change, as one list of fields. */

interface ChangedField {
  /** Dots lead into nested objects. */
  readonly field: string
  /** Null where the view has no such field, or there is no such view. */
  readonly before: string | null
  readonly after: string | null
  readonly changed: boolean
}

export function changedFields(before: unknown, after: unknown): ChangedField[] {
  const left = flat(before)
  const right = flat(after)
  return [...new Set([...left.keys(), ...right.keys()])].map((field) => {
    const [old, now] = [left.get(field) ?? null, right.get(field) ?? null]
    return { field, before: old, after: now, changed: old !== now }
  })
}

/** What says nothing about a resource that is new or gone: a field that was never set. */
export const isUnset = ({ before, after }: ChangedField): boolean =>
  (before ?? "null") === "null" && (after ?? "null") === "null"

function flat(view: unknown, path = ""): Map<string, string> {
  if (view === null || view === undefined) return new Map(path ? [[path, "null"]] : [])
  if (typeof view !== "object" || Array.isArray(view))
    return new Map([[path, typeof view === "string" ? view : JSON.stringify(view)]])
  return new Map(
    Object.entries(view).flatMap(([name, value]) => [...flat(value, path ? `${path}.${name}` : name)]),
  )
}
