/**
 * Prints what becomes of requests and money while workers, network, database and gateways are broken in turn.
 *
 * node test/chaos/main.ts [--seconds 8] [--faults kill,freeze,...]
 */
import { parseArgs } from "node:util"
import { type ChaosResult, type PhaseResult, runChaos } from "./chaos.ts"

const { values } = parseArgs({
  options: { seconds: { type: "string", default: "8" }, faults: { type: "string" } },
})
const millisecondsPerSecond = 1_000
const faultMs = Number(values.seconds) * millisecondsPerSecond

const head = [
  "fault",
  "requests",
  "successes",
  "clean errors",
  "hangs",
  "wrong",
  "recovered after",
  "regions",
]
const widths = [10, 9, 10, 13, 6, 6, 16, 30]
const line = (cells: readonly string[]): string =>
  cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(" ")

function print(phase: PhaseResult): void {
  const regions = Object.entries(phase.regions)
    .map(([region, count]) => `${region} ${count}`)
    .join(", ")
  const counts = [phase.requests, phase.successes, phase.cleanErrors, phase.hangs, phase.wrong]
  process.stdout.write(`${line([phase.name, ...counts.map(String), `${phase.recoveredMs} ms`, regions])}\n`)
  for (const [code, count] of Object.entries(phase.codes))
    process.stdout.write(`           ${count} x ${code}\n`)
}

process.stdout.write(`${line(head)}\n`)
const { phases, money }: ChaosResult = await runChaos({
  faultMs,
  calmMs: faultMs / 2,
  decisions: 4,
  streams: 2,
  ...(values.faults === undefined ? {} : { faults: values.faults.split(",") }),
  onPhase: print,
})
process.stdout.write(
  `\ncharged ${money.chargedTicks} ticks in ${money.chargedSequences} sequences, answers said ${money.expectedTicks}, ` +
    `requests that failed on their way had used ${money.failedTicks}; ` +
    `lost ${money.lostTicks}, double ${money.doubledTicks}; balances ${money.isBalanced ? "are" : "ARE NOT"} the sum of the ledger\n`,
)
const isSound =
  phases.every(({ hangs, wrong }) => hangs === 0 && wrong === 0) &&
  money.lostTicks === 0n &&
  money.doubledTicks === 0n &&
  money.isBalanced
process.stdout.write(isSound ? "sound\n" : "NOT SOUND\n")
process.exitCode = isSound ? 0 : 1
