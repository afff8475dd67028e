/** Repeatable random numbers: the same seed gives the same folds, samples and artefact. */

/** Uniform in [0, 1). */
export type Random = () => number

/** Mulberry32: 32 bits of state, good enough for shuffling and resampling. */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** A copy in random order. */
export function shuffled<T>(values: readonly T[], random: Random): T[] {
  const mixed = [...values]
  for (let last = mixed.length - 1; last > 0; last--) {
    const other = Math.floor(random() * (last + 1))
    const [a, b] = [mixed[last], mixed[other]]
    // Both places are inside the array.
    mixed[last] = b as T
    mixed[other] = a as T
  }
  return mixed
}
