/** The lines of a stream of UTF-8. `node:readline` also ends lines at U+2028 and U+2029, which JSON leaves as they are. */

/** Each without its `\n`, and without a `\r` before that; the last may lack its end. */
export async function* readLines(stream: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let pieces: string[] = []
  for await (const chunk of stream) {
    const [first = "", ...rest] = decoder.decode(chunk, { stream: true }).split("\n")
    pieces.push(first)
    for (const next of rest) {
      yield withoutReturn(pieces.join(""))
      pieces = [next]
    }
  }
  const last = pieces.join("") + decoder.decode()
  if (last !== "") yield withoutReturn(last)
}

const withoutReturn = (line: string): string => (line.endsWith("\r") ? line.slice(0, -1) : line)
