/** Check digits: whether a number is one of its kind, or only looks like it. */

const plain = (text: string): string => text.replaceAll(/[ \u00a0\u202f./\u2010\u2011-]/g, "")

/** ISO 13616: the letters as numbers and the first four characters at the end, modulo 97. */
export function isIban(text: string): boolean {
  const iban = plain(text)
  if (iban.length < 15 || iban.length > 34) return false
  return mod97(iban.slice(4) + iban.slice(0, 4)) === 1
}

export function mod97(text: string): number {
  let rest = 0
  for (const sign of text)
    for (const digit of String(Number.parseInt(sign, 36))) rest = (rest * 10 + Number(digit)) % 97
  return rest
}

export function isCardNumber(text: string): boolean {
  const digits = plain(text)
  return isIssued(digits) && isLuhn(digits)
}

/** The first digits and the lengths that issuers use. */
const isIssued = (digits: string): boolean =>
  /^(?:4\d{12}(?:\d{3}){0,2}|5[1-5]\d{14}|2(?:2[2-9]|[3-6]\d|7[01])\d{13}|3[47]\d{13}|3(?:0[0-5]|[689]\d)\d{11,13}|35\d{14}|6(?:011|5\d\d|4[4-9]\d)\d{12,15}|62\d{14,17})$/.test(
    digits,
  )

export function isLuhn(digits: string): boolean {
  let sum = 0
  for (let at = 0; at < digits.length; at++) {
    const digit = Number(digits[digits.length - 1 - at])
    const doubled = at % 2 === 1 ? digit * 2 : digit
    sum += doubled > 9 ? doubled - 9 : doubled
  }
  return sum % 10 === 0
}

/** The sum of the digits times their weights. */
export function weighted(digits: string, weights: readonly number[]): number {
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
export function isDay(month: string, day: string): boolean {
  const last = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][Number(month) - 1]
  return last !== undefined && Number(day) >= 1 && Number(day) <= last
}
