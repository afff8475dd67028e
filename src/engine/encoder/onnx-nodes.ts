/** Nodes of a network's graph, read from ONNX's protobuf and written to it. */
import {
  type Bytes,
  type FieldBytes,
  fieldsOf,
  intField,
  joined,
  lengthFirst,
  textField,
  textOf,
  textsOf,
} from "./onnx-fields.ts"

/** Field numbers of ONNX's protobuf schema. */
export const GRAPH = { node: 1, name: 2, initializer: 5, input: 11, output: 12 }
export const INITIALIZER = { dims: 1, type: 2, name: 8, data: 9, externalData: 13, dataLocation: 14 }
export const VALUE = { name: 1, type: 2 }
const [TYPE_TENSOR, TENSOR_ELEMENT] = [1, 1]
/** Kinds of numbers. */
export const [FLOAT, INT64] = [1, 7]
const NODE = { input: 1, output: 2, op: 4, attribute: 5, domain: 7 }
const ATTRIBUTE = { name: 1, int: 3, text: 4, graph: 6, type: 20 }
const [ATTRIBUTE_INT, ATTRIBUTE_TEXT, ATTRIBUTE_GRAPH] = [2, 3, 5]
/** Of ONNX Runtime's own operators. */
export const FUSED_DOMAIN = "com.microsoft"

export interface Node {
  readonly op: string
  /** Empty for ONNX's own. */
  readonly domain: string
  readonly inputs: readonly string[]
  readonly outputs: readonly string[]
  /** Of the graphs that an If chooses from, by the names of its attributes. */
  readonly graphs: Readonly<Record<string, InnerGraph>>
  /** The other attributes, as they stand in the file. */
  readonly attributes: readonly Bytes[]
  /** As it stands in the file; null for one that was changed or made. */
  readonly bytes: Bytes | null
}

export interface InnerGraph {
  readonly nodes: readonly Node[]
  /** Its other fields, as they stand in the file. */
  readonly rest: readonly Bytes[]
}

/** Of ONNX's own operators. */
export const nodeFrom = (
  op: string,
  inputs: readonly string[],
  output: string,
  attributes: readonly Bytes[] = [],
): Node => ({ op, domain: "", inputs, outputs: [output], graphs: {}, attributes, bytes: null })

export const changed = (node: Node, changes: Partial<Omit<Node, "bytes">>): Node => ({
  ...node,
  ...changes,
  bytes: null,
})

export const intAttribute = (name: string, value: number): Bytes =>
  attribute([
    ...textField(ATTRIBUTE.name, name),
    intField(ATTRIBUTE.int, value),
    intField(ATTRIBUTE.type, ATTRIBUTE_INT),
  ])

export const textAttribute = (name: string, value: string): Bytes =>
  attribute([
    ...textField(ATTRIBUTE.name, name),
    ...textField(ATTRIBUTE.text, value),
    intField(ATTRIBUTE.type, ATTRIBUTE_TEXT),
  ])

/** The node's others. */
export const withoutAttribute = ({ attributes }: Node, name: string): Bytes[] =>
  attributes.filter((bytes) =>
    Array.from(fieldsOf(bytes)).every(({ content }) => textsOf(content, ATTRIBUTE.name)[0] !== name),
  )

const attribute = (content: readonly Bytes[]): Bytes => joined(lengthFirst(NODE.attribute, content))

export function nodeOf({ content, bytes }: FieldBytes): Node {
  const [inputs, outputs, attributes]: [string[], string[], Bytes[]] = [[], [], []]
  const graphs: Record<string, InnerGraph> = {}
  let [op, domain] = ["", ""]
  for (const field of fieldsOf(content)) {
    if (field.number === NODE.input) inputs.push(textOf(field))
    else if (field.number === NODE.output) outputs.push(textOf(field))
    else if (field.number === NODE.op) op = textOf(field)
    else if (field.number === NODE.domain) domain = textOf(field)
    else if (field.number === NODE.attribute) {
      const graph = [...fieldsOf(field.content)].find(({ number }) => number === ATTRIBUTE.graph)
      if (graph) graphs[textsOf(field.content, ATTRIBUTE.name)[0] ?? ""] = innerGraphOf(graph.content)
      else attributes.push(field.bytes)
    }
  }
  return { op, domain, inputs, outputs, graphs, attributes, bytes }
}

function innerGraphOf(content: Bytes): InnerGraph {
  const fields = [...fieldsOf(content)]
  return {
    nodes: fields.filter(({ number }) => number === GRAPH.node).map(nodeOf),
    rest: fields.filter(({ number }) => number !== GRAPH.node).map(({ bytes }) => bytes),
  }
}

/** As a field of its graph. */
export const bytesOfNode = (node: Node): Bytes => node.bytes ?? encode(node)

const encode = ({ op, domain, inputs, outputs, graphs, attributes }: Node): Bytes =>
  joined(
    lengthFirst(GRAPH.node, [
      ...inputs.flatMap((name) => textField(NODE.input, name)),
      ...outputs.flatMap((name) => textField(NODE.output, name)),
      ...textField(NODE.op, op),
      ...(domain === "" ? [] : textField(NODE.domain, domain)),
      ...attributes,
      ...Object.entries(graphs).map(([name, { nodes, rest }]) =>
        attribute([
          ...textField(ATTRIBUTE.name, name),
          ...lengthFirst(ATTRIBUTE.graph, [...nodes.map(bytesOfNode), ...rest]),
          intField(ATTRIBUTE.type, ATTRIBUTE_GRAPH),
        ]),
      ),
    ]),
  )

/** What the node reads, and what the graphs read that it holds. */
export const readBy = ({ inputs, graphs }: Node): string[] => [
  ...inputs,
  ...Object.values(graphs).flatMap(({ nodes }) => nodes.flatMap(readBy)),
]

/** The node with other names for tensors, wherever they are read or made. */
export function renamed(node: Node, names: ReadonlyMap<string, string>): Node {
  const rename = (known: readonly string[]): string[] => known.map((name) => names.get(name) ?? name)
  if (![...node.outputs, ...readBy(node)].some((name) => names.has(name))) return node
  const graphs = Object.entries(node.graphs).map(
    ([name, { nodes, rest }]) =>
      [name, { nodes: nodes.map((inner) => renamed(inner, names)), rest }] as const,
  )
  const [inputs, outputs] = [rename(node.inputs), rename(node.outputs)]
  return changed(node, { inputs, outputs, graphs: Object.fromEntries(graphs) })
}

/** A tensor of floats of any shape, as an input or output of a graph. */
export function floatValue(field: number, name: string): Bytes {
  const tensor = intField(TENSOR_ELEMENT, FLOAT)
  const type = lengthFirst(VALUE.type, lengthFirst(TYPE_TENSOR, [tensor]))
  return joined(lengthFirst(field, [...textField(VALUE.name, name), ...type]))
}

export interface Named {
  readonly name: string
  /** The field as it stands in the file. */
  readonly bytes: Bytes
}

/** An initializer: whole numbers in one row. */
export function integersNamed(name: string, values: readonly number[]): Named {
  const data = new Uint8Array(BigInt64Array.from(values, BigInt).buffer)
  const content = [
    intField(INITIALIZER.dims, values.length),
    intField(INITIALIZER.type, INT64),
    ...textField(INITIALIZER.name, name),
    ...lengthFirst(INITIALIZER.data, [data]),
  ]
  return { name, bytes: joined(lengthFirst(GRAPH.initializer, content)) }
}
