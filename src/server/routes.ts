/** Finds the endpoint of a request by its method and the segments of its path. */
import type { Endpoint } from "../contract/endpoint.ts"

export interface RouteMatch<Target> {
  readonly target: Target
  readonly params: Readonly<Record<string, string>>
}

/** A longer value is no id of anything. */
const paramCharactersMax = 512

interface Node<Target> {
  readonly children: Map<string, Node<Target>>
  /** Take any segment that no child has the name of; those with the longest ending first. */
  readonly params: Param<Target>[]
  target: Target | undefined
}

/** A parameter, and what follows it in its segment: the ending of `{invoice_id}.pdf`, mostly nothing. */
interface Param<Target> {
  readonly name: string
  readonly ending: string
  readonly node: Node<Target>
}

export class Routes<Target> {
  /** Paths without parameters, by path and method: nothing has to be taken apart. */
  readonly #whole = new Map<string, Map<string, RouteMatch<Target>>>()
  readonly #roots = new Map<string, Node<Target>>()

  add({ method, path }: Pick<Endpoint, "method" | "path">, target: Target): void {
    if (!path.includes("{")) {
      const methods = this.#whole.get(path) ?? new Map<string, RouteMatch<Target>>()
      this.#whole.set(path, methods.set(method, { target, params: noParams }))
    }
    let node = this.#roots.get(method)
    if (!node) this.#roots.set(method, (node = newNode()))
    for (const segment of path.slice(1).split("/")) {
      const [, name, ending = ""] = /^\{(\w+)\}([^{}]*)$/.exec(segment) ?? []
      node = name === undefined ? childOf(node, segment) : paramOf(node, name, ending)
    }
    node.target = target
  }

  /** `path` is as it was sent, without the query. Null where nothing is. */
  find(method: string, path: string): RouteMatch<Target> | null {
    const whole = this.#whole.get(path)?.get(method)
    if (whole) return whole
    const root = this.#roots.get(method)
    const segments = root && path.startsWith("/") ? decoded(path) : null
    if (!root || !segments) return null
    const params: Record<string, string> = {}
    const target = descend(root, segments, 0, params)
    return target === undefined ? null : { target, params }
  }
}

const noParams: Readonly<Record<string, string>> = Object.freeze({})

const newNode = <Target>(): Node<Target> => ({ children: new Map(), params: [], target: undefined })

function childOf<Target>(node: Node<Target>, segment: string): Node<Target> {
  let child = node.children.get(segment)
  if (!child) node.children.set(segment, (child = newNode()))
  return child
}

function paramOf<Target>(node: Node<Target>, name: string, ending: string): Node<Target> {
  const known = node.params.find((param) => param.ending === ending)
  if (known && known.name !== name)
    throw new RangeError(`Cannot add a route: ${name} and ${known.name} are names of one place`)
  if (known) return known.node
  const param: Param<Target> = { name, ending, node: newNode() }
  node.params.push(param)
  node.params.sort((a, b) => b.ending.length - a.ending.length)
  return param.node
}

/** A slash that is escaped belongs to its segment. Null when an escape is broken. */
function decoded(path: string): string[] | null {
  const segments = path.slice(1).split("/")
  if (!path.includes("%")) return segments
  try {
    return segments.map((segment) => decodeURIComponent(segment))
  } catch {
    return null
  }
}

/** A name that is spelled out wins over a parameter, unless what follows fits only the parameter. */
function descend<Target>(
  node: Node<Target>,
  segments: readonly string[],
  at: number,
  params: Record<string, string>,
): Target | undefined {
  const segment = segments[at]
  if (segment === undefined) return node.target
  const child = node.children.get(segment)
  const found = child && descend(child, segments, at + 1, params)
  if (found !== undefined) return found
  for (const { name, ending, node: next } of node.params) {
    const length = segment.length - ending.length
    if (length <= 0 || length > paramCharactersMax || !segment.endsWith(ending)) continue
    const target = descend(next, segments, at + 1, params)
    if (target === undefined) continue
    params[name] = segment.slice(0, length)
    return target
  }
  return undefined
}
