/** Fonts that print any script, and text broken into lines of one font, each in the order in which it is read. */
import { readFile } from "node:fs/promises"
import { createRequire } from "node:module"
import { promisify } from "node:util"
import { inflate } from "node:zlib"
import type PDFDocument from "pdfkit"

type Pdf = InstanceType<typeof PDFDocument>

const require = createRequire(import.meta.url)
const inflateTable = promisify(inflate)

/** DejaVu shapes Latin, Greek, Cyrillic, Hebrew and Arabic; Unifont has every other script of Unicode's first plane. */
const files = {
  regular: "dejavu-fonts-ttf/ttf/DejaVuSans.ttf",
  bold: "dejavu-fonts-ttf/ttf/DejaVuSans-Bold.ttf",
  fallback: "@fontsource/unifont/files/unifont-latin-400-normal.woff",
} as const

export type FontName = keyof typeof files

/** Characters that both faces of DejaVu have: Latin to Cyrillic, Armenian, Hebrew, Arabic, Georgian, and common signs. */
const ownCharacters = new RegExp(
  `^[${[
    String.raw`\u0000-\u02e9\u0300-\u0525\u0531-\u0556\u0561-\u0587\u05d0-\u05ea\u060c\u061b\u061f\u0621-\u063a`,
    String.raw`\u0640-\u0655\u0660-\u0670\u0679-\u06bf\u06cc\u06d5\u06f0-\u06f9\u10d0-\u10fc\u1e00-\u1ef9\u1f00-\u1ffe`,
    String.raw`\u2000-\u20b5\u20b8-\u20ba\u20bd\u2190-\u22ff\u2500-\u25ff`,
  ].join("")}]*$`,
)

const fontOf = (text: string, wanted: FontName): FontName => (ownCharacters.test(text) ? wanted : "fallback")

/** The fallback takes a moment to unpack, so it is read only where a text needs it. */
export async function registerFonts(pdf: Pdf, texts: readonly string[]): Promise<void> {
  pdf.registerFont("regular", await readFile(require.resolve(files.regular)))
  pdf.registerFont("bold", await readFile(require.resolve(files.bold)))
  if (texts.some((text) => fontOf(text, "regular") === "fallback"))
    pdf.registerFont("fallback", await toTrueType(await readFile(require.resolve(files.fallback))))
}

/** Selects the font that has the text's characters. */
export function setFont(pdf: Pdf, text: string, wanted: FontName, size: number): Pdf {
  return pdf.font(fontOf(text, wanted)).fontSize(size)
}

/** What no font has, such as emoji, is shown as a box. */
export const printable = (text: string): string =>
  text.replaceAll(/[\u{10000}-\u{10ffff}\ud800-\udfff]/gu, "\u25a1")

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

const woffHeadBytes = 44
const woffEntryBytes = 20
const sfntHeadBytes = 12
const sfntEntryBytes = 16

/** The library unpacks a WOFF anew for each glyph; as TrueType it reads the same tables as they are. */
async function toTrueType(woff: Buffer): Promise<Buffer> {
  const count = woff.readUInt16BE(12)
  const head = Buffer.alloc(sfntHeadBytes + sfntEntryBytes * count)
  woff.copy(head, 0, 4, 8)
  head.writeUInt16BE(count, 4)
  const parts: Buffer[] = [head]
  let offset = head.length
  for (let index = 0; index < count; index++) {
    const from = woffHeadBytes + woffEntryBytes * index
    const [start, packed, length] = [4, 8, 12].map((at) => woff.readUInt32BE(from + at)) as [
      number,
      number,
      number,
    ]
    const stored = woff.subarray(start, start + packed)
    const table = packed === length ? stored : await inflateTable(stored)
    const to = sfntHeadBytes + sfntEntryBytes * index
    woff.copy(head, to, from, from + 4)
    woff.copy(head, to + 4, from + 16, from + 20)
    head.writeUInt32BE(offset, to + 8)
    head.writeUInt32BE(length, to + 12)
    const padding = Buffer.alloc((4 - (length % 4)) % 4)
    parts.push(table, padding)
    offset += length + padding.length
  }
  return Buffer.concat(parts)
}
