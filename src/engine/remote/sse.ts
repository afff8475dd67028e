/** Reads server-sent events from bytes that may break anywhere. */

/** A line longer than this is not an event of any server that is meant. */
const LINE_CHARACTERS_MAX = 4 * 1024 * 1024

/** The data of each event, in order; comments and other fields are passed over. */
export async function* readEvents(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let text = ""
  let lines: string[] = []
  for await (const chunk of bytes) {
    text += decoder.decode(chunk, { stream: true })
    // A carriage return at the end may be the first half of a line's end.
    const whole = text.endsWith("\r") ? text.slice(0, -1) : text
    const parts = whole.split(/\r\n|\n|\r/)
    text = (parts.pop() ?? "") + text.slice(whole.length)
    if (text.length > LINE_CHARACTERS_MAX) throw new RangeError("An event is longer than any that is meant")
    for (const line of parts) {
      if (line === "") {
        if (lines.length > 0) yield lines.join("\n")
        lines = []
      } else if (line.startsWith("data:")) lines.push(line.slice(line.charAt(5) === " " ? 6 : 5))
    }
  }
  if (text.startsWith("data:")) lines.push(text.slice(text.charAt(5) === " " ? 6 : 5).trimEnd())
  if (lines.length > 0) yield lines.join("\n")
}
