/** What `make` answers; it is called when the value is first asked for, once. */
export function later<Value>(make: () => Value): () => Value {
  let made: { readonly value: Value } | undefined
  return () => (made ??= { value: make() }).value
}
