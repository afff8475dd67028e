/** The font of invoices, and text broken into lines, each in the order in which it is read. */
import { readFile } from "node:fs/promises"
import { createRequire } from "node:module"
import type PDFDocument from "pdfkit"

type Pdf = InstanceType<typeof PDFDocument>

const require = createRequire(import.meta.url)

/** DejaVu shapes Latin, Greek, Cyrillic, Hebrew and Arabic. The HTML invoice prints every other script too. */
const files = {
  regular: "dejavu-fonts-ttf/ttf/DejaVuSans.ttf",
  bold: "dejavu-fonts-ttf/ttf/DejaVuSans-Bold.ttf",
} as const

export type FontName = keyof typeof files

/** Characters that both faces of DejaVu have: Latin to Cyrillic, Armenian, Hebrew, Arabic, Georgian, and common signs. */
const otherCharacters = new RegExp(
  `[^${[
    String.raw`\u0000-\u02e9\u0300-\u0525\u0531-\u0556\u0561-\u0587\u05d0-\u05ea\u060c\u061b\u061f\u0621-\u063a`,
    String.raw`\u0640-\u0655\u0660-\u0670\u0679-\u06bf\u06cc\u06d5\u06f0-\u06f9\u10d0-\u10fc\u1e00-\u1ef9\u1f00-\u1ffe`,
    String.raw`\u2000-\u20b5\u20b8-\u20ba\u20bd\u2190-\u22ff\u2500-\u25ff`,
  ].join("")}]`,
  "gu",
)

export async function registerFonts(pdf: Pdf): Promise<void> {
  for (const [name, file] of Object.entries(files))
    pdf.registerFont(name, await readFile(require.resolve(file)))
}

/** What the font lacks is shown as a box. */
export const printable = (text: string): string => text.replaceAll(otherCharacters, "\u25a1")

/** Lines no wider than `width`, with the font that is set. Words that are too long are broken. */
export function wrap(pdf: Pdf, text: string, width: number): string[] {
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
