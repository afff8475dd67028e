/**
 * Cuts the network of an encoder's ONNX file between layers. A run of the network cannot be stopped; the parts run one after
 * the other, so that short runs of others fit between them. Weights are not copied: the parts say where in the file they lie.
 */
import {
  type Bytes,
  type Field,
  type FieldBytes,
  HEAD_BYTES,
  intField,
  joined,
  lengthFirst,
  notOnnx,
  parseHead,
  textField,
  textsOf,
} from "./onnx-fields.ts"
import {
  FLOAT,
  GRAPH,
  INITIALIZER,
  type Named,
  type Node,
  VALUE,
  bytesOfNode,
  floatValue,
  intAttribute,
  nodeFrom,
  nodeOf,
  readBy,
} from "./onnx-nodes.ts"
import { withFusedNodes, withRowAttention } from "./fused-nodes.ts"

/** Field numbers of ONNX's protobuf schema. */
const MODEL = { graph: 7, metadata: 14 }
const [ENTRY_KEY, ENTRY_VALUE, EXTERNAL] = [1, 2, 1]
/** The initializer of biases by distance, and an input that every layer reads. */
const RELATIVE_TABLE = "relative"
const LAYER_PAST = /^past_keys\.\d+$/
/** Larger ones stay in the file. */
const COPIED_BYTES_MAX = 4096
/** An initializer's name, shape and type come before its data. */
const INITIALIZER_HEAD_BYTES = 512

export interface ModelPart {
  /** An ONNX model. */
  readonly bytes: Bytes
  readonly inputs: readonly string[]
  readonly outputs: readonly string[]
  /** Outputs that later parts need; none in the last. */
  readonly passedOn: readonly string[]
}

export interface Cut {
  readonly parts: number
  /** As floats that hold whole numbers for a GPU, which has no products of 8-bit numbers with signed and unsigned factors. */
  readonly products: "integers" | "floats"
}

/** An ONNX file that can be read at once. */
interface ModelBytes {
  /** Where the parts look for their weights. */
  readonly name: string
  readonly size: number
  /** May give fewer at the end. */
  read(start: number, length: number): Bytes
}

/** Parts of about equally many layers; the last one also reads the margins. */
export function cutModel(file: ModelBytes, layers: number, options: Cut): ModelPart[] {
  return cut([...readModel(file)], layers, options)
}

/** Fields of the model and, instead of its graph, the graph's own. */
function* readModel(file: ModelBytes): Generator<FieldBytes & { readonly isOfGraph: boolean }> {
  for (const field of fieldsIn(file, 0, file.size)) {
    if (field.number !== MODEL.graph) {
      yield { ...field, ...bytesOf(file, field), isOfGraph: false }
      continue
    }
    for (const own of fieldsIn(file, field.start, field.end)) {
      const isLarge = own.number === GRAPH.initializer && own.end - own.start > COPIED_BYTES_MAX
      yield { ...own, ...(isLarge ? referenceTo(file, own) : bytesOf(file, own)), isOfGraph: true }
    }
  }
}

function cut(
  model: readonly (FieldBytes & { readonly isOfGraph: boolean })[],
  layers: number,
  { parts: count, products }: Cut,
): ModelPart[] {
  const head = model
    .filter(({ isOfGraph, number }) => !isOfGraph && number !== MODEL.metadata)
    .map(({ bytes }) => bytes)
  const fields = model.filter(({ isOfGraph }) => isOfGraph)
  const named = (number: number, nameField: number): Named[] =>
    fields
      .filter((field) => field.number === number)
      .map(({ content, bytes }) => ({ name: textsOf(content, nameField)[0] ?? "", bytes }))
  const written = withRowAttention(fields.filter(({ number }) => number === GRAPH.node).map(nodeOf))
  const nodes = products === "floats" ? floatProducts(written.nodes) : withFusedNodes(written.nodes)
  const initializers = [...named(GRAPH.initializer, INITIALIZER.name), ...written.initializers]
  const inputs = named(GRAPH.input, VALUE.name)
  const outputs = named(GRAPH.output, VALUE.name)
  const ends = Array.from({ length: count }, (_, part) => Math.round(((part + 1) * layers) / count))
  const cuts = ends.slice(0, -1).map((end) => layerOutput(nodes, end - 1))
  const biases = count === 1 ? [] : relativeBiases(nodes)
  return ends.map((end, part) => {
    const begin = ends[part - 1] ?? 0
    const isLast = part === cuts.length
    const received = part === 0 ? [] : [...cuts.slice(part - 1, part), ...biases]
    const passedOn = [...cuts.slice(part, part + 1), ...(part === 0 ? biases : [])]
    const own = outputs.filter(({ name }) => {
      const layer = /^(?:keys|values)\.(\d+)$/.exec(name)?.[1]
      return layer === undefined ? isLast : Number(layer) >= begin && Number(layer) < end
    })
    const wanted = [...own.map(({ name }) => name), ...passedOn]
    const needed = nodesFor(nodes, wanted, received)
    const used = new Set(needed.flatMap(readBy))
    const given = inputs.filter(({ name }) => used.has(name))
    const parts = [
      ...needed.map(bytesOfNode),
      ...initializers.filter(({ name }) => used.has(name)).map(({ bytes }) => bytes),
      ...given.map(({ bytes }) => bytes),
      ...received.map((name) => floatValue(GRAPH.input, name)),
      // Of other shapes than the file says: keys and values are not ordered by heads.
      ...own.map(({ name }) => floatValue(GRAPH.output, name)),
      ...passedOn.map((name) => floatValue(GRAPH.output, name)),
    ]
    return {
      bytes: joined([...head, ...lengthFirst(MODEL.graph, parts)]),
      inputs: [...given.map(({ name }) => name), ...received],
      outputs: wanted,
      passedOn,
    }
  })
}

/**
 * A float holds the steps of 8-bit numbers and the sums of their products exactly up to 2^24, so that a network has the margins of its
 * 8-bit products: what their inputs are rounded to stays the same.
 */
function floatProducts(nodes: readonly Node[]): Node[] {
  const sizes = new Map(nodes.filter(({ op }) => op === "Unsqueeze").map(({ inputs }) => [inputs[0], inputs]))
  return nodes.flatMap((node) => {
    const { op, inputs, outputs } = node
    const [read = "", factor = "", , scale = ""] = inputs
    const [output = ""] = outputs
    switch (op) {
      case "QuantizeLinear":
        return [
          nodeFrom("Unsqueeze", sizes.get(factor) ?? [factor], `${output}.size`),
          nodeFrom("Div", [read, `${output}.size`], `${output}.steps`),
          nodeFrom("Round", [`${output}.steps`], output),
        ]
      case "MatMulIntegerToFloat":
        return [
          nodeFrom("Cast", [factor], `${output}.weight`, [intAttribute("to", FLOAT)]),
          nodeFrom("MatMul", [read, `${output}.weight`], `${output}.product`),
          nodeFrom("Mul", [`${output}.product`, scale], output),
        ]
      default:
        return [node]
    }
  })
}

/** What the layer gives to the next: its last normalisation. */
function layerOutput(nodes: readonly Node[], layer: number): string {
  const norm = nodes.find(({ inputs }) => inputs.includes(`blocks.${layer}.feed_norm.weight`))
  const output = norm?.outputs[0]
  if (output === undefined) throw new Error(`Cannot load the model: layer ${layer} has no end`)
  return output
}

/**
 * What all layers add to their scores for how far apart tokens stand, in networks that look at that: the first part makes it, since
 * it is a fifth of the work of a run about long evidence. Floats, as the table is that they are taken from.
 */
function relativeBiases(nodes: readonly Node[]): string[] {
  const derived = new Set([RELATIVE_TABLE])
  const needed = new Set<string>()
  for (const node of nodes) {
    const read = readBy(node)
    const used = read.filter((name) => derived.has(name))
    const isOfLayer = read.some((name) => LAYER_PAST.test(name))
    if (isOfLayer) for (const name of used) needed.add(name)
    else if (used.length > 0) for (const name of node.outputs) derived.add(name)
  }
  return [...needed]
}

/** Those that the wanted tensors come from, in their order, where those that are received are given. */
function nodesFor(nodes: readonly Node[], wanted: readonly string[], received: readonly string[]): Node[] {
  const open = new Set(wanted)
  const given = new Set(received)
  return nodes
    .toReversed()
    .filter((node) => {
      if (!node.outputs.some((output) => open.has(output) && !given.has(output))) return false
      for (const name of readBy(node)) open.add(name)
      return true
    })
    .toReversed()
}

interface FileField extends Field {
  /** Where its head starts. */
  readonly headStart: number
}

function* fieldsIn(file: ModelBytes, start: number, end: number): Generator<FileField> {
  for (let at = start; at < end;) {
    const field = parseHead(file.read(at, Math.min(HEAD_BYTES, end - at)))
    if (field === null || at + field.end > end) throw notOnnx()
    yield { ...field, headStart: at, start: at + field.start, end: at + field.end }
    at += field.end
  }
}

function bytesOf(
  file: ModelBytes,
  { headStart, start, end }: FileField,
): Pick<FieldBytes, "content" | "bytes"> {
  const bytes = file.read(headStart, end - headStart)
  return { bytes, content: bytes.subarray(start - headStart) }
}

/** An initializer whose data stay where they are. */
function referenceTo(file: ModelBytes, { start, end }: FileField): Pick<FieldBytes, "content" | "bytes"> {
  const beginning = file.read(start, Math.min(INITIALIZER_HEAD_BYTES, end - start))
  for (let at = 0; ;) {
    const field = parseHead(beginning, at)
    if (field === null) throw notOnnx()
    if (field.number !== INITIALIZER.data) {
      at = field.end
      continue
    }
    const [offset, length] = [start + field.start, field.end - field.start]
    const content = joined([
      beginning.subarray(0, at),
      ...Object.entries({ location: file.name, offset, length }).flatMap(([key, value]) =>
        lengthFirst(INITIALIZER.externalData, [
          ...textField(ENTRY_KEY, key),
          ...textField(ENTRY_VALUE, String(value)),
        ]),
      ),
      intField(INITIALIZER.dataLocation, EXTERNAL),
    ])
    return { content, bytes: joined(lengthFirst(GRAPH.initializer, [content])) }
  }
}
