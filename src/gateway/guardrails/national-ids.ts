/**
 * Identity, insurance and tax numbers of countries, and the check digits by which a number is told from one that only looks like it.
 * Those that look like any other number count only after their name.
 */
import type { Form } from "./recognizers.ts"

const plain = (text: string): string => text.replaceAll(/[ .+/-]/g, "")

const dniLetters = "TRWAGMYFPDXBNJZSQVHLCKE"
const hetuSigns = "0123456789ABCDEFHJKLMNPRSTUVWXY"
/** What a sign in an odd place of the codice fiscale counts, from 0 to 9 and from A to Z. */
const fiscaleOdd = [
  1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16,
  10, 22, 25, 24, 23,
]

export const nationalIds: readonly Form[] = [
  // United States: social security; areas 000, 666 and 9xx are not used.
  { pattern: /(?<![\w-])(?!000|666|9)\d{3}-(?!00)\d{2}-(?!0000)\d{4}(?![\w-])/g },
  // United Kingdom: national insurance.
  { pattern: /(?<!\w)[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z](?: ?\d{2}){3} ?[A-D](?!\w)/g },
  // United Kingdom: NHS number.
  {
    pattern: /(?<![\w-])\d{3}[ -]?\d{3}[ -]?\d{4}(?![\w-])/g,
    after: /\bnhs\b/i,
    accepts: (text) => weighted(plain(text), [10, 9, 8, 7, 6, 5, 4, 3, 2, 1]) % 11 === 0,
  },
  // Spain: DNI and NIE.
  {
    pattern: /(?<!\w)(?:\d{8}|[XYZ]-?\d{7})-?[A-HJ-NP-TV-Z](?!\w)/g,
    accepts: (text) => {
      const id = plain(text)
      const number = Number(id.slice(0, -1).replace(/^[XYZ]/, (letter) => String("XYZ".indexOf(letter))))
      return dniLetters[number % 23] === id.at(-1)
    },
  },
  // Italy: codice fiscale.
  { pattern: /(?<!\w)[A-Z]{6}\d{2}[A-EHLMPRST]\d{2}[A-Z]\d{3}[A-Z](?!\w)/gi, accepts: isFiscale },
  // France: NIR, with its key.
  {
    pattern: /(?<!\w)[12][ .]?\d{2}[ .]?\d{2}[ .]?(?:\d{2}|2[AB])[ .]?\d{3}[ .]?\d{3}[ .]?\d{2}(?!\w)/g,
    accepts: (text) => {
      const id = plain(text).replace("2A", "19").replace("2B", "18")
      return 97 - mod97(id.slice(0, 13)) === Number(id.slice(13))
    },
  },
  // Brazil: CPF.
  {
    pattern: /(?<!\w)\d{3}\.\d{3}\.\d{3}-\d{2}(?!\w)/g,
    accepts: (text) => {
      const id = plain(text)
      const check = (weights: readonly number[]): number => ((weighted(id, weights) * 10) % 11) % 10
      return check(countdown(10)) === Number(id[9]) && check(countdown(11)) === Number(id[10])
    },
  },
  // China: identity card.
  {
    pattern: /(?<!\w)[1-8]\d{5}(?:19|20)\d{9}[\dX](?!\w)/g,
    accepts: (id) =>
      isDay(id.slice(10, 12), id.slice(12, 14)) &&
      "10X98765432"[weighted(id, [7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2]) % 11] === id.at(-1),
  },
  // Sweden: personnummer; the century is not part of the sum.
  {
    pattern: /(?<![\w-])(?:19|20)?\d{6}[-+]\d{4}(?![\w-])/g,
    accepts: (text) => {
      const id = plain(text).slice(-10)
      return isDay(id.slice(2, 4), id.slice(4, 6)) && isLuhn(id)
    },
  },
  // Finland: henkilötunnus.
  {
    pattern: /(?<!\w)\d{6}[-+A-FU-Y]\d{3}[0-9A-FHJ-NPR-Y](?!\w)/g,
    accepts: (id) =>
      isDay(id.slice(2, 4), id.slice(0, 2)) &&
      hetuSigns[Number(id.slice(0, 6) + id.slice(7, 10)) % 31] === id.at(-1),
  },
  // Belgium: national number; a 2 stands before those born since 2000.
  {
    pattern: /(?<!\w)\d{2}\.\d{2}\.\d{2}-\d{3}\.\d{2}(?!\w)/g,
    accepts: (text) => {
      const id = plain(text)
      const check = Number(id.slice(9))
      return [id.slice(0, 9), `2${id.slice(0, 9)}`].some((number) => 97 - (Number(number) % 97) === check)
    },
  },
  // Netherlands: BSN.
  {
    pattern: /(?<![\w-])\d{4}[ .]?\d{2}[ .]?\d{3}(?![\w-])/g,
    after: /\b(?:bsn|burgerservicenummer|sofinummer)\b/i,
    accepts: (text) => weighted(plain(text), [9, 8, 7, 6, 5, 4, 3, 2, -1]) % 11 === 0,
  },
  // Canada: social insurance.
  {
    pattern: /(?<![\w-])\d{3}[ -]?\d{3}[ -]?\d{3}(?![\w-])/g,
    after: /\b(?:SIN|NAS|social insurance)\b/,
    accepts: (text) => isLuhn(plain(text)),
  },
  // Germany: tax identification.
  {
    pattern: /(?<![\w-])[1-9]\d[ ]?\d{3}[ ]?\d{3}[ ]?\d{3}(?![\w-])/g,
    after: /\b(?:steuer\w{0,24}|id-?nr|tin|tax id)\b/i,
    accepts: (text) => isMod11And10(plain(text)),
  },
  // Poland: PESEL.
  {
    pattern: /(?<![\w-])\d{11}(?![\w-])/g,
    after: /\bpesel\b/i,
    accepts: (id) => weighted(id, [1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1]) % 10 === 0,
  },
  // India: Aadhaar.
  {
    pattern: /(?<![\w-])[2-9]\d{3}[ -]?\d{4}[ -]?\d{4}(?![\w-])/g,
    after: /\b(?:aadhaar|aadhar|uidai)\b/i,
    accepts: (text) => isVerhoeff(plain(text)),
  },
]

const countdown = (from: number): number[] => Array.from({ length: from - 1 }, (_, at) => from - at)

function isFiscale(text: string): boolean {
  const id = text.toUpperCase()
  let sum = 0
  for (let at = 0; at < 15; at++) {
    const value = Number.parseInt(id[at] ?? "", 36)
    // The first place is odd. In even places a letter counts by its place in the alphabet.
    sum += at % 2 === 0 ? (fiscaleOdd[value] ?? 0) : value < 10 ? value : value - 10
  }
  return id.charCodeAt(15) - 65 === sum % 26
}

const withoutSpacing = (text: string): string => text.replaceAll(/[ \u00a0\u202f./\u2010\u2011-]/g, "")

/** ISO 13616: the letters as numbers and the first four characters at the end, modulo 97. */
export function isIban(text: string): boolean {
  const iban = withoutSpacing(text)
  if (iban.length < 15 || iban.length > 34) return false
  return mod97(iban.slice(4) + iban.slice(0, 4)) === 1
}

function mod97(text: string): number {
  let rest = 0
  for (const sign of text)
    for (const digit of String(Number.parseInt(sign, 36))) rest = (rest * 10 + Number(digit)) % 97
  return rest
}

export function isCardNumber(text: string): boolean {
  const digits = withoutSpacing(text)
  return isIssued(digits) && isLuhn(digits)
}

/** The first digits and the lengths that issuers use. */
const isIssued = (digits: string): boolean =>
  /^(?:4\d{12}(?:\d{3}){0,2}|5[1-5]\d{14}|2(?:2[2-9]|[3-6]\d|7[01])\d{13}|3[47]\d{13}|3(?:0[0-5]|[689]\d)\d{11,13}|35\d{14}|6(?:011|5\d\d|4[4-9]\d)\d{12,15}|62\d{14,17})$/.test(
    digits,
  )

function isLuhn(digits: string): boolean {
  let sum = 0
  for (let at = 0; at < digits.length; at++) {
    const digit = Number(digits[digits.length - 1 - at])
    const doubled = at % 2 === 1 ? digit * 2 : digit
    sum += doubled > 9 ? doubled - 9 : doubled
  }
  return sum % 10 === 0
}

/** The sum of the digits times their weights. */
function weighted(digits: string, weights: readonly number[]): number {
  return weights.reduce((sum, weight, at) => sum + weight * Number(digits[at]), 0)
}

/** ISO 7064, modulus 11 and 10. */
export function isMod11And10(digits: string): boolean {
  let product = 10
  for (const digit of digits.slice(0, -1)) {
    const sum = (Number(digit) + product) % 10 || 10
    product = (sum * 2) % 11
  }
  return (11 - product) % 10 === Number(digits.at(-1))
}

/** Verhoeff's: every row of the group of a pentagon, and the permutation by place. */
export function isVerhoeff(digits: string): boolean {
  let check = 0
  for (let at = 0; at < digits.length; at++)
    check = dihedral(check, permuted(Number(digits[digits.length - 1 - at]), at))
  return check === 0
}

function dihedral(a: number, b: number): number {
  if (a < 5) return b < 5 ? (a + b) % 5 : ((a + b - 5) % 5) + 5
  return b < 5 ? ((a - 5 - b + 5) % 5) + 5 : (a - b + 5) % 5
}

const permutation = [1, 5, 7, 6, 2, 8, 3, 0, 9, 4]

function permuted(digit: number, times: number): number {
  let found = digit
  for (let time = 0; time < times % 8; time++) found = permutation[found] ?? 0
  return found
}

/** Of YYMMDD: 29 February counts in every year, for the century is not known. */
function isDay(month: string, day: string): boolean {
  const last = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][Number(month) - 1]
  return last !== undefined && Number(day) >= 1 && Number(day) <= last
}
