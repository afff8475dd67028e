/** Tools that a provider would run itself cannot run here: they are left out, and a header names them. */
import type { Asker } from "../metered-call.ts"

/** The types of the tools that were left out, separated by commas; absent when there are none. */
const toolsDroppedHeader = "x-umpire-tools-dropped"

const NAMES_MAX = 32
const NAME_CHARACTERS_MAX = 64

/** A conversation over a socket has no headers. */
export function noteDropped(asker: Pick<Asker, "header">, dropped: readonly string[]): void {
  if (dropped.length > 0) asker.header?.(toolsDroppedHeader, toolsDroppedValue(dropped))
}

/** More than fit a header are cut off with dots. */
function toolsDroppedValue(names: readonly string[]): string {
  const shown = [...new Set(names)].map((name) =>
    name.replaceAll(/[^\w.:-]/g, "_").slice(0, NAME_CHARACTERS_MAX),
  )
  return [...shown.slice(0, NAMES_MAX), ...(shown.length > NAMES_MAX ? ["..."] : [])].join(", ")
}
