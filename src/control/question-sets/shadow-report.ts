/** How a shadow's answers differ from those beside it, by question: agreement, kappa and confusion. */
import { type jobTable, shadowPairsMax } from "../../contract/question-sets/jobs.ts"
import type { OutputOf } from "../../contract/endpoint.ts"
import { cohensKappa, type LabelPair } from "../../scoring/evaluation.ts"
import { abstained, decodeVerdict, type ShadowCell } from "../../store/question-sets/jobs.ts"

type Report = OutputOf<(typeof jobTable)["getQuestionSetShadowReport"]>["questions"]

/** `cells` in the order of the store: those of one comparison stand together. */
export function shadowReport(cells: readonly ShadowCell[]): Report {
  const byComparison = Map.groupBy(cells, ({ question, version, shadowVersion, shadowModel }) =>
    JSON.stringify([question, version, shadowVersion, shadowModel]),
  )
  return [...byComparison.values()].flatMap((own) => {
    const [first] = own
    return first ? [compared(first, own)] : []
  })
}

function compared(
  { question, version, shadowVersion, shadowModel }: ShadowCell,
  cells: readonly ShadowCell[],
): Report[number] {
  const answers = sumOf(cells)
  const flips = sumOf(cells.filter(({ verdict, shadowVerdict }) => verdict !== shadowVerdict))
  const timesOf = (at: "firstAt" | "lastAt"): number[] => cells.map((cell) => cell[at].getTime())
  return {
    question,
    version,
    shadow_version: shadowVersion,
    shadow_model: shadowModel,
    answers,
    flips,
    agreement: (answers - flips) / answers,
    kappa: cohensKappa(
      // At most as many as there are results of a set.
      cells.flatMap(({ answers: times, verdict, shadowVerdict }) =>
        Array.from({ length: times }, (): LabelPair => [verdict, shadowVerdict]),
      ),
    ),
    confusion: cells.slice(0, shadowPairsMax).map((cell) => ({
      verdict: decodeVerdict(cell.verdict),
      shadow_verdict: decodeVerdict(cell.shadowVerdict),
      answers: cell.answers,
    })),
    mean_shift: cells.reduce((sum, { shiftSum }) => sum + shiftSum, 0) / answers,
    abstained: sumOf(cells.filter(({ verdict }) => verdict === abstained)),
    shadow_abstained: sumOf(cells.filter(({ shadowVerdict }) => shadowVerdict === abstained)),
    first_at: new Date(Math.min(...timesOf("firstAt"))).toISOString(),
    last_at: new Date(Math.max(...timesOf("lastAt"))).toISOString(),
  }
}

const sumOf = (cells: readonly ShadowCell[]): number => cells.reduce((sum, { answers }) => sum + answers, 0)
