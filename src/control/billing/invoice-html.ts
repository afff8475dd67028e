/** An invoice or a receipt as one page that needs nothing else, also on paper. */
import type { InvoiceText } from "./invoice-text.ts"

export function invoiceHtml(text: InvoiceText): string {
  const facts = text.facts.map(([name, value]) => `<dt>${escape(name)}</dt><dd>${escape(value)}</dd>`)
  const rows = text.rows.map(
    (cells) => `<tr>${cells.map((cell) => `<td>${escape(cell)}</td>`).join("")}</tr>`,
  )
  const totals = text.totals.map(
    ([name, value]) => `<tr><th>${escape(name)}</th><td>${escape(value)}</td></tr>`,
  )
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escape(text.title)} ${escape(text.number)}</title>
<style>${style}</style>
</head>
<body>
<main>
<header><h1>${escape(text.title)}</h1><p class="status">${escape(text.status)}</p></header>
<section class="parties">
<div><h2>From</h2><p>${text.from.map(escape).join("<br>")}</p></div>
<div><h2>Billed to</h2><p>${text.billedTo.map(escape).join("<br>")}</p></div>
</section>
<dl>${facts.join("")}</dl>
<table class="lines">
<thead><tr>${text.head.map((cell) => `<th scope="col">${escape(cell)}</th>`).join("")}</tr></thead>
<tbody>${rows.join("\n") || `<tr><td colspan="${text.head.length}">No usage in this period</td></tr>`}</tbody>
</table>
<table class="totals"><tbody>${totals.join("\n")}</tbody></table>
<footer><p>${escape(text.note)}</p></footer>
</main>
</body>
</html>
`
}

const style = `
body { margin: 0; background: #f3f4f6; color: #111827; font: 14px/1.5 system-ui, sans-serif }
main { max-width: 46rem; margin: 2rem auto; padding: 3rem; background: #fff; box-shadow: 0 1px 3px #0002 }
header { display: flex; justify-content: space-between; align-items: center; border-bottom: 2px solid #111827 }
h1 { font-size: 1.75rem; margin: 0 0 .5rem } h2 { font-size: .75rem; color: #6b7280; margin: 0; text-transform: uppercase }
.status { font-weight: 600; border: 1px solid; border-radius: 4px; padding: 0 .75rem; margin: 0 }
.parties { display: grid; grid-template-columns: 1fr 1fr; gap: 2rem; margin: 2rem 0 } .parties p { margin: .25rem 0 0 }
dl { display: grid; grid-template-columns: auto 1fr; gap: .25rem 1.5rem; margin: 0 0 2rem }
dt { color: #6b7280 } dd { margin: 0 }
table { width: 100%; border-collapse: collapse; font-variant-numeric: tabular-nums }
th, td { text-align: right; padding: .5rem .25rem } th:first-child, td:first-child { text-align: left }
.lines thead th { border-bottom: 1px solid #9ca3af; font-size: .75rem; color: #6b7280 }
.lines td { border-bottom: 1px solid #e5e7eb }
.totals { width: 60%; margin: 1.5rem 0 0 auto } .totals th { font-weight: 400; text-align: left }
.totals tr:last-child > * { font-weight: 700; border-top: 2px solid #111827; font-size: 1.1em }
footer { margin-top: 3rem; color: #6b7280 }
@media print { body { background: #fff } main { box-shadow: none; margin: 0; padding: 0; max-width: none } }
`

const entities: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
}
const escape = (text: string): string => text.replaceAll(/[&<>"']/g, (character) => entities[character] ?? "")
