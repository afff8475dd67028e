/** An invoice or a receipt as PDF, A4, with text that can be selected, in any script. */
import { readFile } from "node:fs/promises"
import { createRequire } from "node:module"
import PDFDocument from "pdfkit"
import type { InvoiceText } from "./invoice-text.ts"

type Pdf = InstanceType<typeof PDFDocument>

const margin = 56
const rowGap = 8
/** Where each column ends, as a part of the width; the first is read from the left, the others from the right. */
const columnEnds = [0.27, 0.39, 0.54, 0.68, 0.84, 1]
const ink = "#111827"
const soft = "#6b7280"
const rule = "#d1d5db"
const footerHeight = 60

export async function invoicePdf(text: InvoiceText): Promise<Uint8Array> {
  const pdf = new PDFDocument({
    size: "A4",
    margin,
    info: { Title: `${text.title} ${text.number}`, Author: text.from[0] ?? "", CreationDate: text.at },
  })
  const chunks: Buffer[] = []
  pdf.on("data", (chunk: Buffer) => chunks.push(chunk))
  const done = new Promise<void>((resolve, reject) => pdf.once("end", resolve).once("error", reject))
  await registerFonts(pdf)
  drawHead(pdf, text)
  drawParties(pdf, text)
  drawLines(pdf, text)
  drawTotals(pdf, text)
  write(pdf, text.note, { x: margin, y: pdf.y + 18, width: widthOf(pdf), size: 9, color: soft })
  pdf.end()
  await done
  return Buffer.concat(chunks)
}

const widthOf = (pdf: Pdf): number => pdf.page.width - 2 * margin

interface Place {
  readonly x: number
  readonly y: number
  readonly width: number
  readonly size: number
  readonly color?: string
  readonly font?: FontName
  readonly align?: "left" | "right"
}

/** Writes a text as as many lines as it needs, and answers where the next line would begin. */
function write(pdf: Pdf, given: string, place: Place): number {
  const { x, width, size, color = ink, font = "regular", align = "left" } = place
  const text = printable(given)
  pdf.font(font).fontSize(size).fillColor(color)
  const height = pdf.currentLineHeight(true)
  let { y } = place
  for (const line of wrap(pdf, text, width)) {
    const left = align === "right" ? x + width - pdf.widthOfString(line) : x
    pdf.text(line, left, y, { lineBreak: false })
    y += height
  }
  pdf.y = y
  return y
}

function drawHead(pdf: Pdf, text: InvoiceText): void {
  const width = widthOf(pdf)
  write(pdf, text.title, { x: margin, y: margin, width, size: 22, font: "bold" })
  write(pdf, text.status, { x: margin, y: margin + 8, width, size: 11, font: "bold", align: "right" })
  line(pdf, margin + 34, ink, 1.5)
}

function drawParties(pdf: Pdf, text: InvoiceText): void {
  const width = widthOf(pdf)
  const top = margin + 54
  const half = width / 2
  const left = party(pdf, { x: margin, y: top, width: half }, { title: "From", lines: text.from })
  const right = party(
    pdf,
    { x: margin + half, y: top, width: half },
    { title: "Billed to", lines: text.billedTo },
  )
  let y = Math.max(left, right) + 18
  for (const [name, value] of text.facts) {
    write(pdf, name, { x: margin, y, width: 110, size: 9.5, color: soft })
    y = write(pdf, value, { x: margin + 110, y, width: width - 110, size: 9.5 }) + 4
  }
  pdf.y = y + 18
}

function party(
  pdf: Pdf,
  { x, y, width }: Pick<Place, "x" | "y" | "width">,
  { title, lines }: { title: string; lines: readonly string[] },
): number {
  let next = write(pdf, title.toUpperCase(), { x, y, width, size: 8, color: soft }) + 3
  for (const one of lines) next = write(pdf, one, { x, y: next, width: width - 12, size: 9.5 })
  return next
}

function drawLines(pdf: Pdf, text: InvoiceText): void {
  drawRow(pdf, text.head, { color: soft, size: 8 })
  line(pdf, pdf.y - rowGap / 2, soft, 0.75)
  const rows = text.rows.length > 0 ? text.rows : [["No usage in this period"]]
  for (const cells of rows) {
    if (pdf.y + rowHeight(pdf, cells) > pdf.page.height - margin - footerHeight) {
      pdf.addPage()
      drawRow(pdf, text.head, { color: soft, size: 8 })
      line(pdf, pdf.y - rowGap / 2, soft, 0.75)
    }
    drawRow(pdf, cells, { color: ink, size: rowSize })
    line(pdf, pdf.y - rowGap / 2, rule, 0.5)
  }
}

const rowSize = 9

function rowHeight(pdf: Pdf, cells: readonly string[]): number {
  const heights = cells.map((cell, column) => {
    const text = printable(cell)
    pdf.font("regular").fontSize(rowSize)
    return wrap(pdf, text, columnOf(pdf, cells.length, column).width).length * pdf.currentLineHeight(true)
  })
  return Math.max(...heights) + rowGap
}

function columnOf(pdf: Pdf, count: number, column: number): { readonly x: number; readonly width: number } {
  const start = column === 0 ? 0 : (columnEnds[column - 1] ?? 0)
  const end = column === count - 1 ? 1 : (columnEnds[column] ?? 1)
  return { x: margin + start * widthOf(pdf), width: (end - start) * widthOf(pdf) - (column === 0 ? 6 : 0) }
}

function drawRow(
  pdf: Pdf,
  cells: readonly string[],
  style: { readonly color: string; readonly size: number },
): void {
  const { y } = pdf
  const ends = cells.map((cell, column) => {
    const align = column === 0 ? "left" : "right"
    return write(pdf, cell, { ...columnOf(pdf, cells.length, column), ...style, y, align })
  })
  pdf.y = Math.max(...ends) + rowGap
}

function drawTotals(pdf: Pdf, text: InvoiceText): void {
  const width = widthOf(pdf)
  const totalHeight = 20
  const needed = text.totals.length * totalHeight + footerHeight
  if (pdf.y + needed > pdf.page.height - margin) pdf.addPage()
  let y = pdf.y + 10
  const x = margin + width * 0.4
  text.totals.forEach(([name, value], index) => {
    const last = index === text.totals.length - 1
    if (last)
      pdf
        .moveTo(x, y - 5)
        .lineTo(margin + width, y - 5)
        .lineWidth(1.5)
        .strokeColor(ink)
        .stroke()
    const style = { y, size: last ? 12 : 9.5, font: last ? "bold" : "regular" } as const
    const nameEnd = write(pdf, name, { ...style, x, width: width * 0.36 })
    const valueEnd = write(pdf, value, { ...style, x: x + width * 0.36, width: width * 0.24, align: "right" })
    y = Math.max(nameEnd, valueEnd) + rowGap
  })
  pdf.y = y
}

function line(pdf: Pdf, y: number, color: string, width: number): void {
  pdf
    .moveTo(margin, y)
    .lineTo(pdf.page.width - margin, y)
    .lineWidth(width)
    .strokeColor(color)
    .stroke()
}

const require = createRequire(import.meta.url)

/** DejaVu shapes Latin, Greek, Cyrillic, Hebrew and Arabic. The HTML invoice prints every other script too. */
const files = {
  regular: "dejavu-fonts-ttf/ttf/DejaVuSans.ttf",
  bold: "dejavu-fonts-ttf/ttf/DejaVuSans-Bold.ttf",
} as const

type FontName = keyof typeof files

/** Characters that both faces of DejaVu have: Latin to Cyrillic, Armenian, Hebrew, Arabic, Georgian, and common signs. */
const otherCharacters = new RegExp(
  `[^${[
    String.raw`\u0000-\u02e9\u0300-\u0525\u0531-\u0556\u0561-\u0587\u05d0-\u05ea\u060c\u061b\u061f\u0621-\u063a`,
    String.raw`\u0640-\u0655\u0660-\u0670\u0679-\u06bf\u06cc\u06d5\u06f0-\u06f9\u10d0-\u10fc\u1e00-\u1ef9\u1f00-\u1ffe`,
    String.raw`\u2000-\u20b5\u20b8-\u20ba\u20bd\u2190-\u22ff\u2500-\u25ff`,
  ].join("")}]`,
  "gu",
)

async function registerFonts(pdf: Pdf): Promise<void> {
  for (const [name, file] of Object.entries(files))
    pdf.registerFont(name, await readFile(require.resolve(file)))
}

/** What the font lacks is shown as a box. */
const printable = (text: string): string => text.replaceAll(otherCharacters, "\u25a1")

/** Lines no wider than `width`, with the font that is set. Words that are too long are broken. */
function wrap(pdf: Pdf, text: string, width: number): string[] {
  const lines: string[] = []
  let line = ""
  for (const word of text.split(" ").flatMap((one) => breakWord(pdf, one, width))) {
    const longer = line === "" ? word : `${line} ${word}`
    if (line !== "" && pdf.widthOfString(longer) > width) {
      lines.push(line)
      line = word
    } else line = longer
  }
  return [...lines, line].map(inReadingOrder)
}

function breakWord(pdf: Pdf, word: string, width: number): string[] {
  if (pdf.widthOfString(word) <= width) return [word]
  const pieces: string[] = []
  let piece = ""
  for (const character of word) {
    if (piece !== "" && pdf.widthOfString(piece + character) > width) {
      pieces.push(piece)
      piece = ""
    }
    piece += character
  }
  return [...pieces, piece]
}

const rightToLeft = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/

/** The library draws words from left to right: neighbours of a script that is read from right to left change places. */
function inReadingOrder(line: string): string {
  if (!rightToLeft.test(line)) return line
  const ordered: string[] = []
  let run: string[] = []
  for (const word of line.split(" ")) {
    if (rightToLeft.test(word)) {
      run.unshift(word)
    } else {
      ordered.push(...run, word)
      run = []
    }
  }
  return [...ordered, ...run].join(" ")
}
