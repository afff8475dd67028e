/** Draws an evaluation: a table and bars for the terminal, a reliability diagram as SVG, a page with everything. */
import {
  type Evaluation,
  type Judged,
  answerOf,
  confidenceOf,
  evaluateByLanguage,
} from "../scoring/evaluation.ts"
import type { EvalRow } from "./eval-rows.ts"
import { drawTable } from "./table.ts"
import { plural } from "../base/plural.ts"

export interface Report {
  readonly set: string
  readonly model: string
  readonly endpoint: string
  readonly evaluation: Evaluation
  readonly rows: readonly EvalRow[]
  readonly judged: readonly Judged[]
  readonly tokensPerSecond: number
}

const worstShown = 5
const textShown = 90
const confusionClassesMax = 12

const number = (value: number): string => value.toFixed(3)
const measures = ["rows", "accuracy", "majority", "macro-F1", "Brier", "ECE"]

const measured = ({ count, accuracy, majority, macroF1, brier, calibrationError }: Evaluation): string[] => [
  String(count),
  ...[accuracy, majority, macroF1, brier, calibrationError].map(number),
]

export function drawSummary(reports: readonly Report[]): string {
  return drawTable(
    ["set", "model", "endpoint", ...measures, "tokens/s"],
    reports.map(({ set, model, endpoint, evaluation: found, tokensPerSecond }) => [
      set,
      model,
      endpoint,
      ...measured(found),
      tokensPerSecond.toFixed(0),
    ]),
  )
}

/** Empty where the rows have one language. */
function drawLanguages({ judged }: Report): string[] {
  const found = evaluateByLanguage(judged)
  const rows = found.map(({ language, evaluation: one }) => [language, ...measured(one)])
  return found.length === 0 ? [] : [drawTable(["language", ...measures], rows)]
}

/** The most confident mistakes first: they say most about what the model does not know. */
function worstMistakes({ rows, judged }: Report): { row: EvalRow; one: Judged }[] {
  return judged
    .flatMap((one, index) => {
      const row = rows[index]
      return row && answerOf(one) !== one.gold ? [{ row, one }] : []
    })
    .toSorted((a, b) => confidenceOf(b.one) - confidenceOf(a.one))
}

export function drawDetails(report: Report): string {
  const mistakes = worstMistakes(report)
    .slice(0, worstShown)
    .map(({ row, one }) => [
      confidenceOf(one).toFixed(2),
      answerOf(one),
      one.gold,
      row.text.replaceAll(/\s+/g, " ").slice(0, textShown),
    ])
  return [
    ...drawLanguages(report),
    drawConfusion(report.evaluation),
    mistakes.length > 0 ? drawTable(["stated", "answered", "right", "text"], mistakes) : "No mistakes.\n",
  ].join("\n")
}

function drawConfusion({ confusion }: Evaluation): string {
  const classes = [
    ...new Set([...confusion.keys(), ...[...confusion.values()].flatMap((row) => [...row.keys()])]),
  ].toSorted()
  if (classes.length > confusionClassesMax)
    return `${classes.length} classes: the confusion matrix is in the JSON and HTML reports.\n`
  const rows = classes.map((gold) => [
    gold,
    ...classes.map((answered) => String(confusion.get(gold)?.get(answered) ?? 0)),
  ])
  return drawTable(["right \\ answered", ...classes], rows)
}

const size = 320
const margin = 40

/** Stated confidence against how often it was right; the diagonal is perfect, the width of a dot its share of rows. */
export function reliabilitySvg({ set, model, evaluation }: Report): string {
  const at = (value: number): number => margin + value * (size - 2 * margin)
  const up = (value: number): number => size - at(value)
  const dots = evaluation.reliability
    .filter(({ count }) => count > 0)
    .map(({ meanConfidence, accuracy, count }) => {
      const radius = 3 + 9 * Math.sqrt(count / evaluation.count)
      return `<circle cx="${at(meanConfidence).toFixed(1)}" cy="${up(accuracy).toFixed(1)}" r="${radius.toFixed(1)}" fill="#2563eb" fill-opacity="0.7"><title>${plural(count, "row")} stated ${meanConfidence.toFixed(2)}, right ${accuracy.toFixed(2)}</title></circle>`
    })
  const ticks = [0, 0.25, 0.5, 0.75, 1].flatMap((tick) => [
    `<text x="${at(tick)}" y="${size - margin + 16}" text-anchor="middle">${tick}</text>`,
    `<text x="${margin - 8}" y="${up(tick) + 4}" text-anchor="end">${tick}</text>`,
  ])
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${size} ${size}" width="${size}" height="${size}" font-family="system-ui, sans-serif" font-size="11" fill="#475569" role="img" aria-label="Reliability diagram">`,
    `<text x="${size / 2}" y="18" text-anchor="middle" font-size="13" fill="#0f172a">${escape(set)} · ${escape(model)} · ECE ${evaluation.calibrationError.toFixed(3)}</text>`,
    `<rect x="${margin}" y="${margin}" width="${size - 2 * margin}" height="${size - 2 * margin}" fill="none" stroke="#cbd5e1"/>`,
    `<line x1="${at(0)}" y1="${up(0)}" x2="${at(1)}" y2="${up(1)}" stroke="#94a3b8" stroke-dasharray="4 4"/>`,
    ...ticks,
    `<text x="${size / 2}" y="${size - 6}" text-anchor="middle">stated confidence</text>`,
    `<text x="12" y="${size / 2}" text-anchor="middle" transform="rotate(-90 12 ${size / 2})">accuracy</text>`,
    ...dots,
    "</svg>",
  ].join("\n")
}

export function htmlReport(reports: readonly Report[]): string {
  const sections = reports.map((report) => {
    const { evaluation: e } = report
    const mistakes = worstMistakes(report)
      .slice(0, 20)
      .map(
        ({ row, one }) =>
          `<tr><td>${confidenceOf(one).toFixed(2)}</td><td>${escape(answerOf(one))}</td><td>${escape(one.gold)}</td><td>${escape(row.text.slice(0, 300))}</td></tr>`,
      )
    return `<section><h2>${escape(report.set)} · ${escape(report.model)}</h2>
<p>${plural(e.count, "row")}, accuracy <b>${e.accuracy.toFixed(3)}</b> (majority ${e.majority.toFixed(3)}), macro-F1 ${e.macroF1.toFixed(3)}, Brier ${e.brier.toFixed(3)}, ECE ${e.calibrationError.toFixed(3)}</p>
${reliabilitySvg(report)}${languagesTable(report)}
<h3>Worst mistakes</h3><table><tr><th>stated</th><th>answered</th><th>right</th><th>text</th></tr>${mistakes.join("")}</table></section>`
  })
  return `<!doctype html><html lang="en"><meta charset="utf-8"><title>Evaluation</title>
<style>body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#0f172a}table{border-collapse:collapse;width:100%}td,th{text-align:left;padding:.3rem .6rem;border-bottom:1px solid #e2e8f0;vertical-align:top}</style>
<h1>Evaluation</h1>${sections.join("\n")}</html>\n`
}

function languagesTable({ judged }: Report): string {
  const found = evaluateByLanguage(judged)
  if (found.length === 0) return ""
  const head = ["language", ...measures].map((name) => `<th>${name}</th>`).join("")
  const rows = found.map(({ language, evaluation: one }) => {
    const cells = [escape(language), ...measured(one)].map((cell) => `<td>${cell}</td>`)
    return `<tr>${cells.join("")}</tr>`
  })
  return `
<h3>By language</h3><table><tr>${head}</tr>${rows.join("")}</table>`
}

function escape(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;")
}
