/** Limited-memory BFGS: minimises a smooth function from its value and gradient. */

/** Returns the value at a point and writes its gradient. */
export type Objective = (at: Float64Array, gradient: Float64Array) => number

interface MinimiseOptions {
  readonly iterationsMax: number
  /** Ends when the largest element of the gradient is at most this. */
  readonly gradientMax: number
  /** Ends when iterations in a row each lower the value by less than this share of it. */
  readonly gainMin: number
  /** Awaited between iterations: gives other work a turn, and throws when the work is cancelled. */
  readonly pace: () => Promise<void>
  /** About how much the value curves along each number: the first guess of the Hessian's diagonal. Absent: the same for all. */
  readonly curvatures?: Float64Array
}

interface Minimum {
  readonly at: Float64Array
  readonly value: number
  readonly iterations: number
}

/** Pairs of steps and gradient changes that stand for the Hessian. */
const PAIRS_MAX = 6
/** A step must gain this share of what the slope promises. */
const ARMIJO = 1e-4
const HALVINGS_MAX = 40
/** The first steps from a good start gain little, because the Hessian is not known yet. */
const SMALL_GAINS_MAX = 4

interface Pair {
  readonly step: Float64Array
  readonly change: Float64Array
  /** One over their product. */
  readonly scale: number
}

export async function minimise(
  objective: Objective,
  start: Float64Array,
  { iterationsMax, gradientMax, gainMin, pace, curvatures: given }: MinimiseOptions,
): Promise<Minimum> {
  let at = Float64Array.from(start)
  let gradient = new Float64Array(at.length)
  let value = objective(at, gradient)
  const curvatures = given ?? new Float64Array(at.length).fill(Math.max(1, norm(gradient)))
  const pairs: Pair[] = []
  let iterations = 0
  let smallGains = 0
  while (iterations < iterationsMax && largest(gradient) > gradientMax) {
    await pace()
    const direction = descentDirection(gradient, pairs, curvatures)
    const next = searchLine(objective, { at, value, gradient }, direction)
    if (next === null) break
    iterations++
    remember(pairs, difference(next.at, at), difference(next.gradient, gradient))
    const gain = value - next.value
    ;({ at, value, gradient } = next)
    smallGains = gain <= gainMin * Math.abs(value) ? smallGains + 1 : 0
    if (smallGains === SMALL_GAINS_MAX) break
  }
  return { at, value, iterations }
}

interface Point {
  readonly at: Float64Array<ArrayBuffer>
  readonly value: number
  readonly gradient: Float64Array<ArrayBuffer>
}

/** The two-loop recursion: the gradient times the inverse Hessian that the pairs describe, downhill. */
function descentDirection(
  gradient: Float64Array,
  pairs: readonly Pair[],
  curvatures: Float64Array,
): Float64Array {
  const direction = new Float64Array(gradient.length)
  addScaled(direction, gradient, -1)
  const weights: number[] = []
  for (const { step, change, scale } of pairs.toReversed()) {
    const weight = scale * dot(step, direction)
    addScaled(direction, change, -weight)
    weights.push(weight)
  }
  scaleFirst(direction, pairs.at(-1), curvatures)
  for (const [index, { step, change, scale }] of pairs.entries()) {
    const weight = weights[weights.length - 1 - index] ?? 0
    addScaled(direction, step, weight - scale * dot(change, direction))
  }
  return direction
}

/** By the inverse of the first guess of the Hessian, which is made as steep as the last step was. */
function scaleFirst(direction: Float64Array, last: Pair | undefined, curvatures: Float64Array): void {
  let steepness = 1
  if (last) {
    const { change, scale } = last
    let product = 0
    for (let index = 0; index < change.length; index++) {
      const own = change[index] ?? 0
      product += (own * own) / (curvatures[index] ?? 1)
    }
    steepness = scale * product
  }
  for (let index = 0; index < direction.length; index++)
    direction[index] = (direction[index] ?? 0) / (steepness * (curvatures[index] ?? 1))
}

/** Halves the step until the value falls enough; null when it does not, at the limit of precision. */
function searchLine(objective: Objective, from: Point, direction: Float64Array): Point | null {
  const slope = dot(from.gradient, direction)
  if (!(slope < 0)) return null
  for (let halving = 0, length = 1; halving < HALVINGS_MAX; halving++, length /= 2) {
    const at = Float64Array.from(from.at)
    addScaled(at, direction, length)
    const gradient = new Float64Array(at.length)
    const value = objective(at, gradient)
    if (value <= from.value + ARMIJO * length * slope) return { at, value, gradient }
  }
  return null
}

/** A pair without positive curvature would make the next direction point uphill. */
function remember(pairs: Pair[], step: Float64Array, change: Float64Array): void {
  const curvature = dot(step, change)
  if (curvature <= 1e-12 * dot(change, change)) return
  pairs.push({ step, change, scale: 1 / curvature })
  if (pairs.length > PAIRS_MAX) pairs.shift()
}

/** Four sums at a time: each addition would wait for the one before. */
function dot(left: Float64Array, right: Float64Array): number {
  const whole = left.length - (left.length % 4)
  let [a, b, c, d] = [0, 0, 0, 0]
  for (let index = 0; index < whole; index += 4) {
    a += (left[index] ?? 0) * (right[index] ?? 0)
    b += (left[index + 1] ?? 0) * (right[index + 1] ?? 0)
    c += (left[index + 2] ?? 0) * (right[index + 2] ?? 0)
    d += (left[index + 3] ?? 0) * (right[index + 3] ?? 0)
  }
  for (let index = whole; index < left.length; index++) a += (left[index] ?? 0) * (right[index] ?? 0)
  return a + b + c + d
}

const norm = (vector: Float64Array): number => Math.sqrt(dot(vector, vector))

function addScaled(target: Float64Array, other: Float64Array, scale: number): void {
  for (let index = 0; index < target.length; index++)
    target[index] = (target[index] ?? 0) + scale * (other[index] ?? 0)
}

function difference(left: Float64Array, right: Float64Array): Float64Array {
  const own = Float64Array.from(left)
  addScaled(own, right, -1)
  return own
}

function largest(vector: Float64Array): number {
  let found = 0
  for (let index = 0; index < vector.length; index++) found = Math.max(found, Math.abs(vector[index] ?? 0))
  return found
}
