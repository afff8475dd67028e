/** A model that writes one text, piece by piece, whatever it is asked: for tests that need to know what comes next. */
import { createHash } from "node:crypto"
import { existsSync, mkdirSync, renameSync } from "node:fs"
import path from "node:path"
import { type GgufTensor, type GgufValue, writeGguf } from "./gguf-writer.ts"

const width = 256
const feedForward = 32
const contextTokensDefault = 16_384
const root = path.resolve(import.meta.dirname, "..")
/** Raised when the same script gives a different file. */
const generation = 1
/** How far the next piece stands above all else: its probability is near 0.9, so that sampling can miss it too. */
const nextLogit = 8

const normalToken = 1
const controlToken = 3
const template =
  "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}" +
  "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"

export interface Script {
  /** Each is one token; none may come twice. */
  readonly pieces: readonly string[]
  /** Begins again after the last piece, rather than end. */
  readonly endless?: true
  /** Prompts are spelled in bytes: an agent's has tens of thousands. */
  readonly contextTokens?: number
}

export interface ScriptedModel {
  readonly file: string
  /** The model's own log-probability of each piece when its turn comes. */
  readonly logprobs: readonly number[]
}

/** Every layer adds nothing, so the last token alone says what comes next: its successor's row points the same way. */
export async function scriptedModel(script: Script): Promise<ScriptedModel> {
  const letters = byteLetters()
  const spelled = script.pieces.map((piece) =>
    [...Buffer.from(piece, "utf8")].map((byte) => letters[byte]).join(""),
  )
  const special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
  const tokens = [...letters, ...special, ...spelled]
  const endOfText = letters.length
  const endOfTurn = endOfText + 2
  const firstPiece = letters.length + special.length
  // The template ends with a line feed: that is where the script begins.
  const order = ["\n".charCodeAt(0), ...spelled.map((_, index) => firstPiece + index)]
  order.push(script.endless ? firstPiece : endOfTurn)
  const embedding = signs(tokens.length)
  const output = new Float32Array(tokens.length * width)
  for (const [index, token] of order.slice(0, -1).entries()) {
    const next = (order[index + 1] ?? endOfTurn) * width
    for (let column = 0; column < width; column++)
      output[next + column] =
        (output[next + column] ?? 0) + ((embedding[token * width + column] ?? 0) * nextLogit) / width
  }
  const key = createHash("sha256")
    .update(JSON.stringify([generation, script]))
    .digest("hex")
    .slice(0, 16)
  const file = path.join(root, "node_modules", ".cache", "umpire", `scripted-${key}.gguf`)
  if (!existsSync(file)) {
    mkdirSync(path.dirname(file), { recursive: true })
    const unfinished = `${file}.${process.pid}.part`
    await writeGguf(
      unfinished,
      metadata(tokens, { ...script, endOfText, endOfTurn }),
      tensors(embedding, output),
    )
    renameSync(unfinished, file)
  }
  return {
    file,
    logprobs: spelled.map((_, index) => logprob(embedding, output, order[index] ?? 0, order[index + 1] ?? 0)),
  }
}

/** Rows of plus and minus one: each has the length that the norm keeps, and any two are almost at right angles. */
function signs(rows: number): Float32Array {
  let state = 88_172_645
  return Float32Array.from({ length: rows * width }, () => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return (state & 1024) === 0 ? 1 : -1
  })
}

function logprob(embedding: Float32Array, output: Float32Array, token: number, next: number): number {
  const logits = Array.from({ length: output.length / width }, (_, row) => {
    let sum = 0
    for (let column = 0; column < width; column++)
      sum += (embedding[token * width + column] ?? 0) * (output[row * width + column] ?? 0)
    return sum
  })
  const most = Math.max(...logits)
  const total = logits.reduce((sum, logit) => sum + Math.exp(logit - most), 0)
  return (logits[next] ?? NaN) - most - Math.log(total)
}

const number = (value: number): GgufValue => ({ type: "uint32", value })
const words = (value: string): GgufValue => ({ type: "string", value })

function metadata(
  tokens: readonly string[],
  given: { readonly endOfText: number; readonly endOfTurn: number; readonly contextTokens?: number },
): Record<string, GgufValue> {
  const { endOfText, endOfTurn, contextTokens = contextTokensDefault } = given
  const types = tokens.map((_, index) =>
    index >= endOfText && index <= endOfTurn ? controlToken : normalToken,
  )
  return {
    "general.architecture": words("qwen2"),
    "general.name": words("scripted"),
    "general.file_type": number(0),
    "qwen2.block_count": number(1),
    "qwen2.context_length": number(contextTokens),
    "qwen2.embedding_length": number(width),
    "qwen2.feed_forward_length": number(feedForward),
    "qwen2.attention.head_count": number(4),
    "qwen2.attention.head_count_kv": number(1),
    "qwen2.attention.layer_norm_rms_epsilon": { type: "float32", value: 1e-6 },
    "qwen2.rope.freq_base": { type: "float32", value: 1e6 },
    "tokenizer.ggml.model": words("gpt2"),
    "tokenizer.ggml.pre": words("qwen2"),
    "tokenizer.ggml.tokens": { type: "strings", value: tokens },
    "tokenizer.ggml.token_type": { type: "int32s", value: types },
    // Prompts are spelled in bytes; nothing merges into a piece of the script.
    "tokenizer.ggml.merges": { type: "strings", value: [] },
    "tokenizer.ggml.bos_token_id": number(endOfText),
    "tokenizer.ggml.eos_token_id": number(endOfTurn),
    "tokenizer.ggml.padding_token_id": number(endOfText),
    "tokenizer.ggml.add_bos_token": { type: "bool", value: false },
    "tokenizer.chat_template": words(template),
  }
}

const filled = (name: string, shape: readonly number[], values: Float32Array): GgufTensor => ({
  name,
  shape,
  type: "F32",
  bytes: new Uint8Array(values.buffer, values.byteOffset, values.byteLength),
})

const zeros = (name: string, ...shape: readonly number[]): GgufTensor =>
  filled(name, shape, new Float32Array(shape.reduce((product, size) => product * size, 1)))

const ones = (name: string): GgufTensor => filled(name, [width], new Float32Array(width).fill(1))

function tensors(embedding: Float32Array, output: Float32Array): GgufTensor[] {
  const rows = embedding.length / width
  const keyValueWidth = width / 4
  return [
    filled("token_embd.weight", [width, rows], embedding),
    ones("blk.0.attn_norm.weight"),
    zeros("blk.0.attn_q.weight", width, width),
    zeros("blk.0.attn_k.weight", width, keyValueWidth),
    zeros("blk.0.attn_v.weight", width, keyValueWidth),
    zeros("blk.0.attn_q.bias", width),
    zeros("blk.0.attn_k.bias", keyValueWidth),
    zeros("blk.0.attn_v.bias", keyValueWidth),
    zeros("blk.0.attn_output.weight", width, width),
    ones("blk.0.ffn_norm.weight"),
    zeros("blk.0.ffn_gate.weight", width, feedForward),
    zeros("blk.0.ffn_up.weight", width, feedForward),
    zeros("blk.0.ffn_down.weight", feedForward, width),
    ones("output_norm.weight"),
    filled("output.weight", [width, rows], output),
  ]
}

/** Byte-level vocabularies give every byte a printable letter: itself where it is one, else one from 256 on. */
function byteLetters(): string[] {
  let next = 256
  return Array.from({ length: 256 }, (_, byte) => {
    const printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174
    return String.fromCodePoint(printable ? byte : next++)
  })
}
