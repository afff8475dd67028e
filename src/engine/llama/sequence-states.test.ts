import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { defaultModelFile } from "../../../test/models.ts"
import type { KeptState } from "./decoder.ts"
import type { PreparedJob } from "./scorer.ts"
import { Scorer } from "./scorer.ts"
import type { StateCalls } from "./sequence-states.ts"
import { DeviceStates } from "./sequence-states.ts"

const never = new AbortController().signal
const ON_DEVICE = 2
const CELL_BYTES = 10
const FIRST_SLOT = 100

/** llama.cpp's rules: one buffer for each sequence that was ever saved, replaced by the next save and by nothing else. */
class FakeDevice implements StateCalls {
  readonly sequences = new Map<number, readonly number[]>()
  readonly buffers = new Map<number, readonly number[]>()

  bytes(sequence: number, flags: number): number {
    return flags === ON_DEVICE ? 8 : this.#cells(sequence).length * CELL_BYTES
  }

  async save(into: Uint8Array, sequence: number, flags: number): Promise<number> {
    expect({ flags, cells: this.#cells(sequence).length > 0 }).toEqual({ flags: ON_DEVICE, cells: true })
    this.buffers.set(sequence, this.#cells(sequence))
    into.set([sequence, this.#cells(sequence).length])
    return into.length
  }

  async restore(from: Uint8Array, sequence: number): Promise<number> {
    const buffer = this.buffers.get(from[0] ?? -1) ?? []
    expect(from[1]).toBe(buffer.length)
    this.sequences.set(sequence, buffer)
    return from.length
  }

  copy(from: number, to: number, end: number): void {
    this.sequences.set(to, end === -1 ? this.#cells(from) : this.#cells(from).slice(0, end))
  }

  remove(sequence: number): void {
    this.sequences.delete(sequence)
  }

  get bufferBytes(): number {
    return [...this.buffers.values()].reduce((sum, cells) => sum + cells.length * CELL_BYTES, 0)
  }

  #cells(sequence: number): readonly number[] {
    return this.sequences.get(sequence) ?? []
  }
}

const saved = async (device: FakeDevice, states: DeviceStates, cells: readonly number[]) => {
  device.sequences.set(0, cells)
  return await states.save(0, states.bytesOf(0))
}

describe("states on a device", () => {
  test("come back as they were saved, whatever was saved and given up since", async () => {
    const lengths = fc.array(fc.record({ length: fc.integer({ min: 1, max: 9 }), victim: fc.nat(3) }), {
      minLength: 1,
      maxLength: 30,
    })
    await fc.assert(
      fc.asyncProperty(lengths, async (steps) => {
        const [slots, bytesMax] = [4, 9 * CELL_BYTES]
        const device = new FakeDevice()
        const states = new DeviceStates(device, { firstSequence: FIRST_SLOT, slots, bytesMax })
        const held: { state: KeptState; cells: readonly number[] }[] = []
        for (const [step, { length, victim }] of steps.entries()) {
          const bytes = () => held.reduce((sum, { state }) => sum + state.bytes, 0)
          while (held.length === slots || bytes() + length * CELL_BYTES > bytesMax) {
            for (const { state } of held.splice(victim % held.length, 1)) states.release(state)
          }
          const cells = Array.from({ length }, (_, index) => step * 100 + index)
          held.push({ state: await saved(device, states, cells), cells })
          for (const { state, cells: expected } of held) {
            await states.restore(1, state)
            expect(device.sequences.get(1)).toEqual(expected)
          }
          // Of every slot that was shrunk a single cell remains.
          expect(device.bufferBytes).toBeLessThanOrEqual(bytesMax + slots * CELL_BYTES)
          expect([...device.sequences.keys()].every((sequence) => sequence < FIRST_SLOT)).toBe(true)
        }
      }),
    )
  })

  test("are never restored or given up after they were given up", async () => {
    const device = new FakeDevice()
    const states = new DeviceStates(device, { firstSequence: FIRST_SLOT, slots: 1, bytesMax: 1000 })
    const first = await saved(device, states, [1, 2, 3])
    states.release(first)
    const second = await saved(device, states, [4, 5, 6])
    await expect(states.restore(1, first)).rejects.toThrow("given up")
    expect(() => states.release(first)).toThrow("given up")
    await states.restore(1, second)
    expect(device.sequences.get(1)).toEqual([4, 5, 6])
  })
})

const open = (keepsOnDevice: boolean): Promise<Scorer> =>
  Scorer.open({ modelFile: defaultModelFile, threads: 1, memoryBytes: 0, keepsOnDevice })

const evidence = (name: string): string => `${name} wrote three times and asks for money. `.repeat(60)

test("answers from evidence kept on a device are those from memory, bit by bit", async () => {
  const branches = ["Is it late?", "Is it about money?", "Is it about food?"].map(
    (question) => `\n\nQuestion: ${question}\nAnswer yes or no.`,
  )
  const answers = []
  for (const scorer of [await open(false), await open(true)]) {
    const prepare = (name: string): Promise<PreparedJob> =>
      scorer.prepare({ organizationId: "a", evidence: evidence(name), branches }, never)
    const [ann, bob] = [await prepare("Ann"), await prepare("Bob")]
    const found = []
    // Evaluated, found in its cells, evaluated, and found outside them.
    for (const job of [ann, ann, bob, ann, bob]) found.push([...(await scorer.run(job, never))])
    expect(scorer.stats().tokensReused).toBe(2 * ann.prefix.length + bob.prefix.length)
    expect(found).toEqual([found[0], found[0], found[2], found[0], found[2]])
    expect(found[2]).not.toEqual(found[0])
    answers.push(found)
    await scorer.close()
  }
  expect(answers[1]).toEqual(answers[0])
})
