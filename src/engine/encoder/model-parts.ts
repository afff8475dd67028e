/**
 * Cuts the network of an encoder's ONNX file between layers. A run of the network cannot be stopped; the parts run one after
 * the other, so that short runs of others fit between them. Weights are not copied: the parts say where in the file they lie.
 */
import { closeSync, fstatSync, openSync, readSync } from "node:fs"
import { basename } from "node:path"
import { BYTES, type Field, HEAD_BYTES, parseHead } from "./model-file.ts"

/** Field numbers of ONNX's protobuf schema. */
const MODEL = { graph: 7, metadata: 14 }
const GRAPH = { node: 1, initializer: 5, input: 11, output: 12 }
const NODE = { input: 1, output: 2, attribute: 5 }
const ATTRIBUTE = { graph: 6 }
const INITIALIZER = { name: 8, data: 9, externalData: 13, dataLocation: 14 }
const [ENTRY_KEY, ENTRY_VALUE, EXTERNAL] = [1, 2, 1]
const VALUE = { name: 1, type: 2 }
const [TYPE_TENSOR, TENSOR_ELEMENT, FLOAT] = [1, 1, 1]
/** Larger ones stay in the file. */
const COPIED_BYTES_MAX = 4096
/** An initializer's name, shape and type come before its data. */
const INITIALIZER_HEAD_BYTES = 512

export interface ModelPart {
  /** An ONNX model. */
  readonly bytes: Buffer
  readonly inputs: readonly string[]
  readonly outputs: readonly string[]
  /** The output that is an input of the next part; null in the last. */
  readonly passedOn: string | null
}

interface Named {
  readonly name: string
  /** The field as it stands in the file. */
  readonly bytes: Buffer
}

interface Node {
  readonly bytes: Buffer
  /** With those of the graphs that it holds. */
  readonly inputs: readonly string[]
  readonly outputs: readonly string[]
}

/** Parts of about equally many layers; the last one also reads the margins. The weights are looked for in the file's folder. */
export function cutModel(path: string, layers: number, count: number): ModelPart[] {
  const file = openSync(path, "r")
  try {
    return cut([...readModel(file, basename(path))], layers, count)
  } finally {
    closeSync(file)
  }
}

/** Fields of the model and, instead of its graph, the graph's own. */
function* readModel(file: number, name: string): Generator<FieldBytes & { readonly isOfGraph: boolean }> {
  for (const field of fieldsIn(file, 0, fstatSync(file).size)) {
    if (field.number !== MODEL.graph) {
      yield { ...field, ...bytesOf(file, field), isOfGraph: false }
      continue
    }
    for (const own of fieldsIn(file, field.start, field.end)) {
      const isLarge = own.number === GRAPH.initializer && own.end - own.start > COPIED_BYTES_MAX
      yield { ...own, ...(isLarge ? referenceTo(file, name, own) : bytesOf(file, own)), isOfGraph: true }
    }
  }
}

function cut(
  model: readonly (FieldBytes & { readonly isOfGraph: boolean })[],
  layers: number,
  count: number,
): ModelPart[] {
  const head = model
    .filter(({ isOfGraph, number }) => !isOfGraph && number !== MODEL.metadata)
    .map(({ bytes }) => bytes)
  const fields = model.filter(({ isOfGraph }) => isOfGraph)
  const named = (number: number, nameField: number): Named[] =>
    fields
      .filter((field) => field.number === number)
      .map(({ content, bytes }) => ({ name: textsOf(content, nameField)[0] ?? "", bytes }))
  const nodes = fields.filter(({ number }) => number === GRAPH.node).map(nodeOf)
  const initializers = named(GRAPH.initializer, INITIALIZER.name)
  const inputs = named(GRAPH.input, VALUE.name)
  const outputs = named(GRAPH.output, VALUE.name)
  const ends = Array.from({ length: count }, (_, part) => Math.round(((part + 1) * layers) / count))
  const cuts = ends.slice(0, -1).map((end) => layerOutput(nodes, end - 1))
  return ends.map((end, part) => {
    const begin = ends[part - 1] ?? 0
    const received = cuts[part - 1]
    const passedOn = cuts[part] ?? null
    const own = outputs.filter(({ name }) => {
      const layer = /^(?:keys|values)\.(\d+)$/.exec(name)?.[1]
      return layer === undefined ? passedOn === null : Number(layer) >= begin && Number(layer) < end
    })
    const wanted = [...own.map(({ name }) => name), ...(passedOn === null ? [] : [passedOn])]
    const needed = nodesFor(nodes, wanted, received)
    const used = new Set(needed.flatMap((node) => node.inputs))
    const given = inputs.filter(({ name }) => used.has(name))
    const parts = [
      ...needed.map(({ bytes }) => bytes),
      ...initializers.filter(({ name }) => used.has(name)).map(({ bytes }) => bytes),
      ...given.map(({ bytes }) => bytes),
      ...(received === undefined ? [] : [floatValue(GRAPH.input, received)]),
      ...own.map(({ bytes }) => bytes),
      ...(passedOn === null ? [] : [floatValue(GRAPH.output, passedOn)]),
    ]
    return {
      bytes: Buffer.concat([...head, ...lengthFirst(MODEL.graph, parts)]),
      inputs: [...given.map(({ name }) => name), ...(received === undefined ? [] : [received])],
      outputs: wanted,
      passedOn,
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

/** Those that the wanted tensors come from, in their order, where `received` is given. */
function nodesFor(nodes: readonly Node[], wanted: readonly string[], received: string | undefined): Node[] {
  const open = new Set(wanted)
  return nodes
    .toReversed()
    .filter(({ inputs, outputs }) => {
      if (!outputs.some((output) => open.has(output) && output !== received)) return false
      for (const input of inputs) open.add(input)
      return true
    })
    .toReversed()
}

function nodeOf({ content, bytes }: FieldBytes): Node {
  const outputs = textsOf(content, NODE.output)
  return { bytes, inputs: [...inputsOf(content)], outputs }
}

function* inputsOf(node: Buffer): Generator<string> {
  yield* textsOf(node, NODE.input)
  for (const attribute of fieldsOf(node)) {
    if (attribute.number !== NODE.attribute) continue
    for (const graph of fieldsOf(attribute.content)) {
      if (graph.number !== ATTRIBUTE.graph) continue
      for (const inner of fieldsOf(graph.content))
        if (inner.number === GRAPH.node) yield* inputsOf(inner.content)
    }
  }
}

interface FieldBytes {
  readonly number: number
  readonly content: Buffer
  /** With its head. */
  readonly bytes: Buffer
}

function* fieldsOf(message: Buffer): Generator<FieldBytes> {
  for (let at = 0; at < message.length;) {
    const field: Field | null = parseHead(message.subarray(at))
    if (field === null || at + field.end > message.length) throw notOnnx()
    yield {
      number: field.number,
      content: message.subarray(at + field.start, at + field.end),
      bytes: message.subarray(at, at + field.end),
    }
    at += field.end
  }
}

interface FileField extends Field {
  /** Where its head starts. */
  readonly headStart: number
}

function* fieldsIn(file: number, start: number, end: number): Generator<FileField> {
  for (let at = start; at < end;) {
    const field = parseHead(bytesAt(file, at, Math.min(HEAD_BYTES, end - at)))
    if (field === null || at + field.end > end) throw notOnnx()
    yield { ...field, headStart: at, start: at + field.start, end: at + field.end }
    at += field.end
  }
}

function bytesAt(file: number, start: number, length: number): Buffer {
  const bytes = Buffer.alloc(length)
  return bytes.subarray(0, readSync(file, bytes, 0, length, start))
}

function bytesOf(file: number, { headStart, start, end }: FileField): Pick<FieldBytes, "content" | "bytes"> {
  const bytes = bytesAt(file, headStart, end - headStart)
  return { bytes, content: bytes.subarray(start - headStart) }
}

/** An initializer whose data stay where they are. */
function referenceTo(
  file: number,
  name: string,
  { start, end }: FileField,
): Pick<FieldBytes, "content" | "bytes"> {
  const beginning = bytesAt(file, start, Math.min(INITIALIZER_HEAD_BYTES, end - start))
  for (let at = 0; ;) {
    const field = parseHead(beginning.subarray(at))
    if (field === null) throw notOnnx()
    if (field.number !== INITIALIZER.data) {
      at += field.end
      continue
    }
    const [offset, length] = [start + at + field.start, field.end - field.start]
    const content = Buffer.concat([
      beginning.subarray(0, at),
      ...Object.entries({ location: name, offset, length }).flatMap(([key, value]) =>
        lengthFirst(INITIALIZER.externalData, [
          ...lengthFirst(ENTRY_KEY, [Buffer.from(key)]),
          ...lengthFirst(ENTRY_VALUE, [Buffer.from(String(value))]),
        ]),
      ),
      Buffer.from([INITIALIZER.dataLocation * 8, EXTERNAL]),
    ])
    return { content, bytes: Buffer.concat(lengthFirst(GRAPH.initializer, [content])) }
  }
}

const notOnnx = (): Error => new Error("Cannot load the model: it is not an ONNX file")

const textsOf = (message: Buffer, number: number): string[] =>
  Array.from(fieldsOf(message))
    .filter((field) => field.number === number)
    .map(({ content }) => content.toString("utf8"))

/** A tensor of floats of any shape, as an input or output of a graph. */
function floatValue(field: number, name: string): Buffer {
  const tensor = Buffer.from([TENSOR_ELEMENT * 8, FLOAT])
  const type = Buffer.concat(lengthFirst(TYPE_TENSOR, [tensor]))
  const value = [...lengthFirst(VALUE.name, [Buffer.from(name)]), ...lengthFirst(VALUE.type, [type])]
  return Buffer.concat(lengthFirst(field, value))
}

function lengthFirst(number: number, parts: readonly Buffer[]): Buffer[] {
  const length = parts.reduce((sum, part) => sum + part.length, 0)
  return [Buffer.from([...varint(number * 8 + BYTES), ...varint(length)]), ...parts]
}

function varint(value: number): number[] {
  const digits: number[] = []
  for (let rest = value; ; rest = Math.floor(rest / 128)) {
    if (rest < 128) return [...digits, rest]
    digits.push((rest % 128) + 128)
  }
}
