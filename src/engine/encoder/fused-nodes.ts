/** Makes the network of an encoder's file a faster one, with the same bits, by nodes that do the work of several. */
import { textField } from "./onnx-fields.ts"
import {
  FUSED_DOMAIN,
  GRAPH,
  type InnerGraph,
  type Named,
  type Node,
  changed,
  floatValue,
  integersNamed,
  nodeFrom,
  readBy,
  renamed,
  textAttribute,
  withoutAttribute,
} from "./onnx-nodes.ts"

/** The normalisation of tokens as they are read; those of the layers are not fused, and take a fifth of the time so. */
const TOKEN_NORM = "norm.weight"

/**
 * As ONNX Runtime does when it optimizes a graph. Its own search for what else could be fused takes a third of the time in which a network
 * is opened, and finds nothing else in an encoder's.
 */
export function withFusedNodes(nodes: readonly Node[]): Node[] {
  const made = new Map(nodes.flatMap((node) => node.outputs.map((name) => [name, node] as const)))
  const reads = new Map<string, number>()
  for (const name of nodes.flatMap(readBy)) reads.set(name, (reads.get(name) ?? 0) + 1)
  const gone = new Set<Node>()
  const fused = nodes.map((node) => {
    const [read = ""] = node.inputs
    const before = made.get(read)
    // What is read elsewhere too stays.
    if (!before || reads.get(read) !== 1) return node
    const one = fuse(before, node)
    if (one) gone.add(before)
    return one ?? node
  })
  return fused.filter((node) => !gone.has(node))
}

/** One node in place of two after each other; undefined where they stay two. */
function fuse(before: Node, node: Node): Node | undefined {
  const { op, inputs, outputs } = node
  switch (`${before.op} ${op}`) {
    case "Add Gelu":
      return changed(node, { op: "BiasGelu", inputs: before.inputs })
    case "Add LayerNormalization": {
      if (inputs[1] !== TOKEN_NORM) return undefined
      const norm = {
        op: "SkipLayerNormalization",
        domain: FUSED_DOMAIN,
        attributes: withoutAttribute(node, "axis"),
      }
      return changed(node, { ...norm, inputs: [...before.inputs, ...inputs.slice(1)] })
    }
    case "Gemm Tanh":
    case "Gemm Sigmoid": {
      const attributes = [...before.attributes, textAttribute("activation", op)]
      return changed(before, { op: "FusedGemm", domain: FUSED_DOMAIN, attributes, outputs })
    }
    default:
      return undefined
  }
}

const FUSED = "MultiHeadAttention"
/** Its inputs before the bias: queries, keys and values; two are not given. */
const [FUSED_INPUTS, NOT_GIVEN] = [3, ["", ""]]

interface RowAttention {
  readonly nodes: readonly Node[]
  /** Further ones. */
  readonly initializers: readonly Named[]
}

/**
 * The file's attention has two forms: fused, for a long block of evidence that sees all of itself, and one of many steps beside a past, which
 * counts for nothing where it is empty. Here every row without a past takes a fused one, with a bias for what its tokens may not see.
 * Keys and values leave as the products made them, a row for each token, and only what reads a past orders them by heads: a run
 * computes all outputs, wanted or not.
 */
export function withRowAttention(nodes: readonly Node[]): RowAttention {
  const made = new Map(nodes.flatMap((node) => node.outputs.map((name) => [name, node] as const)))
  const makerOf = (name: string | undefined): Node => {
    const node = made.get(name ?? "")
    if (!node) throw notOurs()
    return node
  }
  // keys.N is Pad(Transpose(Reshape(x))) of the product x.
  const pads = nodes.filter(({ op, outputs }) => op === "Pad" && CACHED.test(outputs[0] ?? ""))
  const names = new Map(
    pads.map(({ inputs, outputs }) => {
      const ordered = makerOf(makerOf(inputs[0]).inputs[0])
      return [ordered.inputs[0] ?? "", outputs[0] ?? ""]
    }),
  )
  const moved = new Set<Node>(pads)
  const conditions = new Map<string, readonly Node[]>()
  const rewritten = nodes.map((node) => {
    if (node.op !== "If") return node
    const [isWhole = ""] = node.inputs
    const [, hasNoPast = ""] = makerOf(isWhole).inputs
    const { then_branch: whole, else_branch: parts } = node.graphs
    if (!whole || !parts) throw notOurs()
    const ordering = orderingFor(parts, made)
    for (const one of ordering) moved.add(one)
    const beside = { ...parts, nodes: [...ordering, ...parts.nodes] }
    const rows = rowGraph(whole, parts)
    const graphs = { ...node.graphs, then_branch: rows, else_branch: beside }
    // A network with heads by distance has a bias in its whole blocks, too: those are rows like any other.
    if (isBiased(whole)) return changed(node, { inputs: [hasNoPast], graphs })
    conditions.set(IS_ROW, [
      nodeFrom("Not", [isWhole], `${IS_ROW}.parts`),
      nodeFrom("And", [hasNoPast, `${IS_ROW}.parts`], IS_ROW),
    ])
    const [output = ""] = node.outputs
    const outputs = [`${output}.beside`]
    const inner = changed(node, { outputs, graphs: { ...node.graphs, else_branch: beside } })
    return changed(node, { inputs: [IS_ROW], graphs: { then_branch: rows, else_branch: graphOf(inner) } })
  })
  const kept = rewritten.filter((node) => !moved.has(node)).map((node) => renamed(node, names))
  const firstChoice = kept.findIndex(({ op }) => op === "If")
  return {
    nodes: kept.toSpliced(firstChoice, 0, ...[...conditions.values()].flat()),
    initializers: [integersNamed(BIAS_SHAPE, [0, 0, -1, 0])],
  }
}

const CACHED = /^(?:keys|values)\.\d+$/
const IS_ROW = "is row"
/** Of a bias [P, H, R, T, T] to [P, H, R * T, T], which for one row of each past is that of the row. */
const BIAS_SHAPE = "row bias shape"

/** The steps outside the graph that order queries, keys and values by heads, which is for this graph alone. */
function orderingFor({ nodes }: InnerGraph, made: ReadonlyMap<string, Node>): Node[] {
  return [...new Set(nodes.flatMap(readBy))].flatMap((name) => {
    const transpose = made.get(name)
    if (transpose?.op !== "Transpose") return []
    const reshape = made.get(transpose.inputs[0] ?? "")
    const shape = made.get(reshape?.inputs[1] ?? "")
    if (!reshape || !shape) throw notOurs()
    return [shape, reshape, transpose]
  })
}

const isBiased = ({ nodes }: InnerGraph): boolean =>
  nodes.some(({ op, inputs }) => op === FUSED && inputs.length > FUSED_INPUTS)

/** The fused attention of a whole block with the bias that the parts have for what is not seen. */
function rowGraph(whole: InnerGraph, parts: InnerGraph): InnerGraph {
  const scores = parts.nodes.find(({ op }) => op === "FusedMatMul")?.outputs[0]
  const [, unseen] = parts.nodes.find(({ op, inputs }) => op === "Add" && inputs[0] === scores)?.inputs ?? []
  if (unseen === undefined) throw notOurs()
  const bias = nodeFrom("Reshape", [unseen, BIAS_SHAPE], "row bias")
  const rows = whole.nodes
    .filter(({ op }) => op !== "Squeeze")
    .map((node) =>
      node.op === FUSED
        ? changed(node, { inputs: [...node.inputs.slice(0, FUSED_INPUTS), ...NOT_GIVEN, "row bias"] })
        : node,
    )
  return { ...whole, nodes: [bias, ...rows] }
}

function graphOf(node: Node): InnerGraph {
  const [output = ""] = node.outputs
  return { nodes: [node], rest: [...textField(GRAPH.name, output), floatValue(GRAPH.output, output)] }
}

const notOurs = (): Error => new Error("Cannot load the model: it is not the graph of an Umpire encoder")
