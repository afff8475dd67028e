/** The arrays of a llama_batch, allocated once and written for every decode. */
import assert from "node:assert/strict"
import koffi from "koffi"
import type { BatchToken } from "./decoder.ts"
import type { NativeBatch, NativePointer } from "./library.ts"

export class BatchBuffers {
  readonly #tokensMax: number
  readonly #token: NativeArray
  readonly #position: NativeArray
  readonly #sequenceCount: NativeArray
  readonly #sequences: NativeArray
  readonly #sequencePointers: NativeArray
  readonly #output: NativeArray

  constructor(tokensMax: number, sequencesMax: number) {
    this.#tokensMax = tokensMax
    this.#token = nativeArray("int32", tokensMax)
    this.#position = nativeArray("int32", tokensMax)
    this.#sequenceCount = nativeArray("int32", tokensMax)
    this.#sequences = nativeArray("int32", tokensMax * sequencesMax)
    this.#sequencePointers = nativeArray("uint64", tokensMax + 1)
    this.#output = nativeArray("int8", tokensMax)
  }

  write(batch: readonly BatchToken[]): NativeBatch {
    assert(batch.length > 0 && batch.length <= this.#tokensMax, `a batch of ${batch.length} tokens`)
    const token = new Int32Array(this.#token.memory)
    const position = new Int32Array(this.#position.memory)
    const sequenceCount = new Int32Array(this.#sequenceCount.memory)
    const sequences = new Int32Array(this.#sequences.memory)
    const sequencePointers = new BigUint64Array(this.#sequencePointers.memory)
    const output = new Int8Array(this.#output.memory)
    let used = 0
    for (const [index, entry] of batch.entries()) {
      token[index] = entry.token
      position[index] = entry.position
      output[index] = entry.output ? 1 : 0
      sequenceCount[index] = entry.sequences.length
      sequencePointers[index] = this.#sequences.address + BigInt(used * Int32Array.BYTES_PER_ELEMENT)
      for (const sequence of entry.sequences) sequences[used++] = sequence
    }
    return {
      n_tokens: batch.length,
      token: this.#token.pointer,
      embd: null,
      pos: this.#position.pointer,
      n_seq_id: this.#sequenceCount.pointer,
      seq_id: this.#sequencePointers.pointer,
      logits: this.#output.pointer,
    }
  }
}

interface NativeArray {
  readonly pointer: NativePointer
  readonly address: bigint
  readonly memory: ArrayBuffer
}

function nativeArray(type: string, length: number): NativeArray {
  const pointer: NativePointer = koffi.alloc(type, length)
  return {
    pointer,
    address: koffi.address(pointer),
    memory: koffi.view(pointer, length * koffi.sizeof(type)),
  }
}
