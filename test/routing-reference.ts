/** Where a request runs, read off the contract sentence by sentence and sharing no code with the router it is held against. */

export interface RoutingCase {
  readonly mode: "nearest" | "ordered" | "required"
  readonly fallback: "disabled" | "same_country" | "visible_regions"
  readonly listed: readonly string[]
  readonly visible: readonly string[]
  readonly hosting: readonly string[]
  readonly dead: readonly string[]
  readonly hint: string | null
}

export interface Expectation {
  /** The regions that are asked, in order. */
  readonly asked: readonly string[]
  /** The region that answers, or the code of the error. */
  readonly outcome: { readonly region: string } | { readonly error: string }
}

/** The regions of the tests, nearest to the gateway (in Paris) first; measured on a map, not computed. */
const nearestFirst = ["paris", "lyon", "berlin", "oslo"] as const
export const countryOf: Record<string, string> = { paris: "FR", lyon: "FR", berlin: "DE", oslo: "NO" }

export function expectedRouting(given: RoutingCase): Expectation {
  if (given.hint !== null && countryOf[given.hint] === undefined) return refuse("unknown_routing_hint")

  // "Inference runs only in regions that are visible to the organization, host the model and, when `regions` is
  // nonempty, are listed there."
  const mayRun = new Set<string>()
  for (const region of nearestFirst) {
    if (!given.visible.includes(region)) continue
    if (!given.hosting.includes(region)) continue
    if (given.listed.length > 0 && !given.listed.includes(region)) continue
    mayRun.add(region)
  }

  // The mode's order. Ordered follows the list; with no list it is nearest. Required goes by priority, too.
  const byPriority = given.mode !== "nearest" && given.listed.length > 0
  const line: string[] = []
  for (const region of byPriority ? given.listed : nearestFirst) if (mayRun.has(region)) line.push(region)

  // The first region: what the mode says, or the hint; under required only the first listed one.
  let first = line[0]
  if (given.hint !== null) first = given.hint
  if (given.mode === "required") {
    const required = given.listed[0]
    if (given.hint !== null && given.hint !== required) return refuse("region_denied")
    first = required
  }
  if (first === undefined || !mayRun.has(first)) return refuse("region_denied")

  // Which may be tried after it.
  const asked: string[] = [first]
  for (const region of line) {
    if (region === first || given.fallback === "disabled") continue
    if (given.fallback === "same_country" && countryOf[region] !== countryOf[first]) continue
    asked.push(region)
  }

  const alive = asked.findIndex((region) => !given.dead.includes(region))
  if (alive < 0) return { asked, outcome: { error: "routing_failed" } }
  return { asked: asked.slice(0, alive + 1), outcome: { region: asked[alive] ?? "" } }
}

const refuse = (error: string): Expectation => ({ asked: [], outcome: { error } })
