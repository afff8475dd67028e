/** The limits that the contract puts on both classification endpoints, and the two measures of text that they use. */

export const LIMITS = {
  bodyBytesMax: 8 * 1024 * 1024,
  /** Combined input text of decisions, rendered state of System One. */
  evidenceBytesMax: 4 * 1024 * 1024,
  questionsMax: 4096,
  branchesMax: 4096,
  /** The text of one branch, without the chat template's own tokens. */
  expandedQuestionBytesMax: 16 * 1024,
  modelBytesMax: 256,
  questionIdBytesMax: 256,
  optionsMin: 1,
  optionsMax: 255,
  levelsMin: 2,
  levelsMax: 10,
  /** Arrays and objects inside one another in a state or description. */
  jsonDepthMax: 64,
} as const

/** Blank is empty or nothing but Unicode white space. */
export const isBlank = (text: string): boolean => !/\P{White_Space}/u.test(text)

/** Size in UTF-8, for well-formed text; counted rather than encoded, so that a browser can do it too. */
export function utf8Bytes(text: string): number {
  let bytes = text.length
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code < 0x80) continue
    // Half of a surrogate pair is one unit that stands for two of the pair's four bytes.
    bytes += code < 0x800 || (code >= 0xd800 && code <= 0xdfff) ? 1 : 2
  }
  return bytes
}

/** Whether text fits a limit; most texts are so short or so long that they need not be counted. */
export function fitsUtf8(text: string, bytesMax: number): boolean {
  if (text.length * 3 <= bytesMax) return true
  return text.length <= bytesMax && utf8Bytes(text) <= bytesMax
}
