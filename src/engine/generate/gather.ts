/** Gathers the events of one generation into groups: the first leaves at once, those that follow closely together. */
import type { GenerationEvent } from "../engine.ts"

/**
 * Every message wakes the gateway, on a machine whose cores all decode. Tokens of small models come every few
 * milliseconds; a reader does not notice whether they arrive one by one.
 */
const gatherMs = 20

const late = Symbol("late")

export async function* gather(
  source: AsyncIterable<GenerationEvent>,
  waitMs: number = gatherMs,
): AsyncGenerator<readonly GenerationEvent[], undefined, undefined> {
  const events = source[Symbol.asyncIterator]()
  let group: GenerationEvent[] = []
  let sentMs = -Infinity
  let next: Promise<IteratorResult<GenerationEvent>> | null = null
  try {
    for (;;) {
      if (group.length > 0 && performance.now() - sentMs >= waitMs) {
        yield group
        group = []
        sentMs = performance.now()
      }
      next ??= events.next()
      const step = group.length === 0 ? await next : await within(next, sentMs + waitMs - performance.now())
      if (step === late) continue
      next = null
      if (step.done) break
      append(group, step.value)
    }
  } catch (error) {
    next = null
    if (group.length > 0) yield group
    throw error
  } finally {
    // The result of this read is no longer awaited.
    next?.catch(() => undefined)
    await events.return?.()
  }
  if (group.length > 0) yield group
}

async function within<Step>(next: Promise<Step>, ms: number): Promise<Step | typeof late> {
  const { promise, resolve } = Promise.withResolvers<typeof late>()
  // The time may be up since it was last looked at; Node warns of negative delays.
  const timer = setTimeout(() => resolve(late), Math.max(0, ms))
  try {
    return await Promise.race([next, promise])
  } finally {
    clearTimeout(timer)
  }
}

/** Pieces of one text become one event. */
function append(events: GenerationEvent[], event: GenerationEvent): void {
  const last = events.at(-1)
  const whole = last && joined(last, event)
  if (whole) events[events.length - 1] = whole
  else events.push(event)
}

function joined(last: GenerationEvent, next: GenerationEvent): GenerationEvent | null {
  if (last.kind === "text" && next.kind === "text") {
    const logprobs = last.logprobs && next.logprobs ? [...last.logprobs, ...next.logprobs] : null
    return { kind: "text", text: last.text + next.text, logprobs }
  }
  if (last.kind === "reasoning" && next.kind === "reasoning")
    return { kind: "reasoning", text: last.text + next.text }
  if (last.kind === "arguments" && next.kind === "arguments")
    return { kind: "arguments", text: last.text + next.text }
  return null
}
