/** How much of a text's end must wait, because it may be the start of a mark that more text completes. */

export function holdBack(text: string, marks: readonly string[]): number {
  let kept = 0
  for (const mark of marks)
    for (let length = Math.min(mark.length - 1, text.length); length > kept; length--)
      if (text.endsWith(mark.slice(0, length))) {
        kept = length
        break
      }
  return kept
}
