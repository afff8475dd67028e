/** Evaluated sequences outside the cells: in ordinary memory, or in the memory of the GPU that computes. */
import assert from "node:assert/strict"
import type { KeptState, SequenceStates } from "./decoder.ts"

/** llama.cpp's flag for leaving what the cells hold in buffers beside them, filed under the sequence that was saved. */
const ON_DEVICE = 2
const IN_MEMORY = 0
/**
 * Saving and restoring cost copies for each layer, whatever their length. Measured on an H200 with the default model they
 * take about as long as evaluating so many tokens amid others, see docs/gpu.md.
 */
const DEVICE_TOKENS_MIN = 256

/** The native calls on states of one context. */
export interface StateCalls {
  /** Bytes of the part of a state that goes to ordinary memory, which is all of it unless the flag says otherwise. */
  bytes(sequence: number, flags: number): number
  save(into: Uint8Array, sequence: number, flags: number): Promise<number>
  restore(from: Uint8Array, sequence: number, flags: number): Promise<number>
  /** Lets `to` hold the cells of `from` before position `end`; -1 is the end. */
  copy(from: number, to: number, end: number): void
  remove(sequence: number): void
}

class HostState implements KeptState {
  readonly memory: Uint8Array

  constructor(memory: Uint8Array) {
    this.memory = memory
  }

  get bytes(): number {
    return this.memory.length
  }
}

/** In ordinary memory, which the garbage collector takes back. */
export class HostStates implements SequenceStates {
  readonly statesMax = Number.POSITIVE_INFINITY
  readonly tokensMin = 1
  readonly #calls: StateCalls

  constructor(calls: StateCalls) {
    this.#calls = calls
  }

  bytesOf(sequence: number): number {
    return this.#calls.bytes(sequence, IN_MEMORY)
  }

  async save(sequence: number, bytes: number): Promise<KeptState> {
    return new HostState(await written(this.#calls, sequence, bytes, IN_MEMORY))
  }

  async restore(sequence: number, state: KeptState): Promise<void> {
    assert(state instanceof HostState, "a state of another decoder")
    await read(this.#calls, sequence, state.memory, IN_MEMORY)
  }

  release(): void {
    // Nothing but the state itself holds its memory.
  }
}

/** A sequence id that no token ever has: llama.cpp keeps one buffer under each, until the next save under it. */
interface Slot {
  readonly sequence: number
  /** Size of the buffer; one that holds a single cell counts as nothing. */
  bytes: number
  state: DeviceState | undefined
}

class DeviceState implements KeptState {
  readonly slot: Slot
  readonly bytes: number
  /** Positions and shapes, which go through ordinary memory. */
  readonly header: Uint8Array

  constructor(slot: Slot, bytes: number, header: Uint8Array) {
    this.slot = slot
    this.bytes = bytes
    this.header = header
  }
}

interface DeviceStatesOptions {
  /** The sequences that serve as slots. */
  readonly firstSequence: number
  readonly slots: number
  readonly bytesMax: number
  readonly tokensMin?: number
}

/** Where the cells are. The caller keeps all saved states within `bytesMax`; released buffers then fit too. */
export class DeviceStates implements SequenceStates {
  readonly statesMax: number
  readonly tokensMin: number
  readonly #calls: StateCalls
  readonly #bytesMax: number
  readonly #slots: readonly Slot[]

  constructor(calls: StateCalls, options: DeviceStatesOptions) {
    this.#calls = calls
    this.#bytesMax = options.bytesMax
    this.statesMax = options.slots
    this.tokensMin = options.tokensMin ?? DEVICE_TOKENS_MIN
    this.#slots = Array.from({ length: options.slots }, (_, index) => ({
      sequence: options.firstSequence + index,
      bytes: 0,
      state: undefined,
    }))
  }

  bytesOf(sequence: number): number {
    return this.#calls.bytes(sequence, IN_MEMORY)
  }

  async save(sequence: number, bytes: number): Promise<KeptState> {
    // The largest buffer that was given up is replaced first: that frees the most.
    const [slot, ...others] = this.#slots
      .filter((candidate) => candidate.state === undefined)
      .toSorted((a, b) => b.bytes - a.bytes)
    assert(slot !== undefined, "every slot is held")
    await this.#shrink(others, this.#bytesMax - bytes - this.#bytesOfOthers(slot), sequence)
    const state = new DeviceState(slot, bytes, await this.#fill(slot, sequence, -1))
    slot.bytes = bytes
    slot.state = state
    return state
  }

  #bytesOfOthers(slot: Slot): number {
    return this.#slots.reduce((sum, other) => sum + (other === slot ? 0 : other.bytes), 0)
  }

  /** Nothing frees a buffer but the next save under its sequence, so a single cell is saved there. */
  async #shrink(free: readonly Slot[], bytesLeft: number, sequence: number): Promise<void> {
    let left = bytesLeft
    for (const slot of free) {
      if (left >= 0 || slot.bytes === 0) return
      left += slot.bytes
      await this.#fill(slot, sequence, 1)
      slot.bytes = 0
    }
  }

  async #fill(slot: Slot, from: number, end: number): Promise<Uint8Array> {
    this.#calls.copy(from, slot.sequence, end)
    const bytes = this.#calls.bytes(slot.sequence, ON_DEVICE)
    const header = await written(this.#calls, slot.sequence, bytes, ON_DEVICE)
    this.#calls.remove(slot.sequence)
    return header
  }

  async restore(sequence: number, state: KeptState): Promise<void> {
    assert(state instanceof DeviceState, "a state of another decoder")
    // llama.cpp ends the process when a buffer does not fit the header.
    assert(state.slot.state === state, "a state that was given up")
    await read(this.#calls, sequence, state.header, ON_DEVICE)
  }

  release(state: KeptState): void {
    assert(state instanceof DeviceState && state.slot.state === state, "a state that was given up")
    state.slot.state = undefined
  }
}

async function written(
  calls: StateCalls,
  sequence: number,
  bytes: number,
  flags: number,
): Promise<Uint8Array> {
  const memory = Buffer.allocUnsafeSlow(bytes)
  const found = await calls.save(memory, sequence, flags)
  assert(found === bytes, `state of sequence ${sequence}: ${found} of ${bytes} bytes`)
  return memory
}

async function read(calls: StateCalls, sequence: number, memory: Uint8Array, flags: number): Promise<void> {
  const found = await calls.restore(memory, sequence, flags)
  assert(found === memory.length, `state of sequence ${sequence}: ${found} of ${memory.length} bytes read`)
}
