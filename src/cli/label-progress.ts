/** Shows how far `umpire label` is: a bar that is drawn over itself on a terminal, a line now and then elsewhere. */
import type { CliContext } from "./command.ts"
import { counted, plural } from "../base/plural.ts"

const drawEveryMs = 200
const lineEveryMs = 10_000
const barWidth = 24

interface Progress {
  done(one: { readonly tokens: number; readonly isFailed: boolean }): void
  /** Leaves the terminal on a new line. */
  end(): void
}

interface ProgressParts {
  readonly total: number
  /** Answered before this start. */
  readonly before: number
  readonly priceUsd: number | null
  readonly nowMs?: () => number
}

export function startProgress({ stderr }: Pick<CliContext, "stderr">, parts: ProgressParts): Progress {
  const { total, before, priceUsd, nowMs = () => performance.now() } = parts
  const isTerminal = "isTTY" in stderr && stderr.isTTY === true
  const startedMs = nowMs()
  let shownMs = startedMs
  let count = 0
  let tokens = 0
  let failed = 0
  const text = (): string => {
    const elapsedMs = Math.max(1, nowMs() - startedMs)
    const rate = (1000 * count) / elapsedMs
    const all = before + count
    return [
      `${counted(all)}/${plural(total, "text")}`,
      `${rate.toFixed(rate < 10 ? 1 : 0)} a second`,
      ...(priceUsd === null ? [plural(tokens, "token")] : [usd((tokens / 1e6) * priceUsd)]),
      ...(failed > 0 ? [`${counted(failed)} failed`] : []),
      ...(count > 0 && all < total ? [`${duration((total - all) / rate)} left`] : []),
    ].join(", ")
  }
  const draw = (): void => {
    const share = total === 0 ? 1 : (before + count) / total
    const filled = Math.round(share * barWidth)
    const bar = `${"█".repeat(filled)}${"░".repeat(barWidth - filled)}`
    // Erases what a longer line left behind.
    if (isTerminal) stderr.write(`\r${bar} ${text()}\u001b[K`)
    else stderr.write(`${text()}\n`)
  }
  return {
    done: (one) => {
      count++
      tokens += one.tokens
      if (one.isFailed) failed++
      const now = nowMs()
      if (now - shownMs < (isTerminal ? drawEveryMs : lineEveryMs)) return
      shownMs = now
      draw()
    },
    end: () => {
      draw()
      if (isTerminal) stderr.write("\n")
    },
  }
}

/** To a hundredth of a cent: a row costs less than a cent. */
export const usd = (value: number): string => `$${value.toFixed(4)}`

const two = (value: number): string => String(value).padStart(2, "0")

function duration(seconds: number): string {
  const whole = Math.ceil(seconds)
  const minutes = `${two(Math.floor(whole / 60) % 60)}:${two(whole % 60)}`
  return whole < 3600 ? minutes : `${Math.floor(whole / 3600)}:${minutes}`
}
