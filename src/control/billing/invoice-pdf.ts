/** An invoice as PDF, A4, with text that can be selected. */
import PDFDocument from "pdfkit"
import type { Invoice, InvoiceLine } from "../../store/invoices.ts"
import { type InvoiceText, invoiceText } from "./invoice-text.ts"
import type { Seller } from "./parts.ts"

type Pdf = InstanceType<typeof PDFDocument>

const margin = 56
const rowHeight = 22
/** Where each column ends, as a part of the width; the first is read from the left, the others from the right. */
const columnEnds = [0.27, 0.37, 0.52, 0.65, 0.79, 1]
const ink = "#111827"
const soft = "#6b7280"
const rule = "#d1d5db"
const footerHeight = 60

export async function invoicePdf(
  invoice: Invoice,
  lines: readonly InvoiceLine[],
  seller: Seller,
): Promise<Uint8Array> {
  const text = invoiceText(invoice, lines, seller)
  const pdf = new PDFDocument({
    size: "A4",
    margin,
    info: { Title: `${text.title} ${text.number}`, Author: seller.name, CreationDate: invoice.issuedAt },
  })
  const chunks: Buffer[] = []
  pdf.on("data", (chunk: Buffer) => chunks.push(chunk))
  const done = new Promise<void>((resolve, reject) => pdf.once("end", resolve).once("error", reject))
  drawHead(pdf, text)
  drawParties(pdf, text)
  drawLines(pdf, text)
  drawTotals(pdf, text)
  pdf
    .moveDown(2)
    .font("Helvetica")
    .fontSize(9)
    .fillColor(soft)
    .text(text.note, margin, pdf.y, { width: widthOf(pdf) })
  pdf.end()
  await done
  return Buffer.concat(chunks)
}

const widthOf = (pdf: Pdf): number => pdf.page.width - 2 * margin

function drawHead(pdf: Pdf, text: InvoiceText): void {
  const width = widthOf(pdf)
  pdf.font("Helvetica-Bold").fontSize(24).fillColor(ink).text(text.title, margin, margin)
  pdf.fontSize(11).text(text.status, margin, margin + 8, { width, align: "right" })
  line(pdf, margin + 34, ink, 1.5)
}

function drawParties(pdf: Pdf, text: InvoiceText): void {
  const width = widthOf(pdf)
  const top = margin + 54
  const half = width / 2
  const left = party(pdf, "From", text.from, margin, top, half)
  const right = party(pdf, "Billed to", text.billedTo, margin + half, top, half)
  let y = Math.max(left, right) + 18
  for (const [name, value] of text.facts) {
    pdf.font("Helvetica").fontSize(10).fillColor(soft).text(name, margin, y, { width: 110 })
    pdf.fillColor(ink).text(value, margin + 110, y, { width: width - 110 })
    y += 16
  }
  pdf.y = y + 18
}

function party(
  pdf: Pdf,
  title: string,
  lines: readonly string[],
  x: number,
  y: number,
  width: number,
): number {
  pdf.font("Helvetica").fontSize(8).fillColor(soft).text(title.toUpperCase(), x, y, { width })
  pdf
    .fontSize(10)
    .fillColor(ink)
    .text(lines.join("\n"), x, y + 13, { width: width - 12 })
  return pdf.y
}

function drawLines(pdf: Pdf, text: InvoiceText): void {
  row(pdf, text.head, { bold: false, color: soft, size: 8 })
  line(pdf, pdf.y - 6, soft, 0.75)
  const rows = text.rows.length > 0 ? text.rows : [["No usage in this period"]]
  for (const cells of rows) {
    if (pdf.y + rowHeight > pdf.page.height - margin - footerHeight) {
      pdf.addPage()
      row(pdf, text.head, { bold: false, color: soft, size: 8 })
      line(pdf, pdf.y - 6, soft, 0.75)
    }
    row(pdf, cells, { bold: false, color: ink, size: 9.5 })
    line(pdf, pdf.y - 6, rule, 0.5)
  }
}

function drawTotals(pdf: Pdf, text: InvoiceText): void {
  const width = widthOf(pdf)
  const needed = text.totals.length * rowHeight + footerHeight
  if (pdf.y + needed > pdf.page.height - margin) pdf.addPage()
  let y = pdf.y + 10
  const x = margin + width * 0.45
  text.totals.forEach(([name, value], index) => {
    const last = index === text.totals.length - 1
    if (last)
      pdf
        .moveTo(x, y - 5)
        .lineTo(margin + width, y - 5)
        .lineWidth(1.5)
        .strokeColor(ink)
        .stroke()
    pdf
      .font(last ? "Helvetica-Bold" : "Helvetica")
      .fontSize(last ? 12 : 10)
      .fillColor(ink)
    pdf.text(name, x, y, { width: width * 0.35 }).text(value, x, y, { width: width * 0.55, align: "right" })
    y += rowHeight
  })
  pdf.y = y
}

interface RowStyle {
  readonly bold: boolean
  readonly color: string
  readonly size: number
}

function row(pdf: Pdf, cells: readonly string[], { bold, color, size }: RowStyle): void {
  const width = widthOf(pdf)
  const { y } = pdf
  pdf
    .font(bold ? "Helvetica-Bold" : "Helvetica")
    .fontSize(size)
    .fillColor(color)
  cells.forEach((cell, column) => {
    const start = column === 0 ? 0 : (columnEnds[column - 1] ?? 0)
    const end = cells.length === 1 ? 1 : (columnEnds[column] ?? 1)
    pdf.text(cell, margin + start * width, y, {
      width: (end - start) * width - (column === 0 ? 6 : 0),
      align: column === 0 ? "left" : "right",
      lineBreak: false,
      ellipsis: true,
      height: rowHeight,
    })
  })
  pdf.y = y + rowHeight
}

function line(pdf: Pdf, y: number, color: string, width: number): void {
  pdf
    .moveTo(margin, y)
    .lineTo(pdf.page.width - margin, y)
    .lineWidth(width)
    .strokeColor(color)
    .stroke()
}
