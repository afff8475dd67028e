/** Cuts text where it has no place to be split: a word of a hundred thousand letters would end the process that reads it. */

/**
 * Many models' tokenizers split text with a regular expression whose matcher calls itself for each character that it
 * takes in, down to the end of the stack: measured with 16 MiB of it, between 80,000 and 160,000 characters. Language has
 * no such words, so that a cut costs nothing but a token more.
 */
const runCharactersMax = 16 * 1024
/** The text of a special token is not cut. */
const specialCharactersMax = 64

/** Pieces that make up the text, in which nothing goes on for longer without a blank, or as blanks. Mostly the text itself. */
export function piecesOf(text: string): readonly string[] {
  if (text.length <= runCharactersMax) return [text]
  const pieces: string[] = []
  let pieceStart = 0
  let runStart = 0
  for (let at = 1; at < text.length; at++) {
    if (isBlank(text, at) !== isBlank(text, at - 1)) runStart = at
    else if (at - runStart >= runCharactersMax) {
      runStart = cutBefore(text, at)
      pieces.push(text.slice(pieceStart, runStart))
      pieceStart = runStart
    }
  }
  pieces.push(text.slice(pieceStart))
  return pieces
}

function isBlank(text: string, at: number): boolean {
  const code = text.charCodeAt(at)
  return code === 0x20 || (code >= 0x09 && code <= 0x0d)
}

/** Not inside of what may be a special token, and not between the halves of a character. */
function cutBefore(text: string, end: number): number {
  for (let at = end; at > end - specialCharactersMax; at--)
    if (text[at] === "<" || text[at] === "[") return at
  const isLowHalf = (text.charCodeAt(end) & 0xfc00) === 0xdc00
  return isLowHalf ? end - 1 : end
}
