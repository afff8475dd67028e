/** The lines by which two texts differ, as a person compares them: kept, removed, added. */

const linesMax = 5_000

/** Longest common subsequence; whole lines, with three unchanged ones around each change. */
export function drawDifference(before: string, after: string): string {
  const [old, next] = [before, after].map((text) => text.split("\n").slice(0, linesMax)) as [
    string[],
    string[],
  ]
  const common = commonLengths(old, next)
  const lines: string[] = []
  for (let i = 0, j = 0; i < old.length || j < next.length;) {
    if (i < old.length && j < next.length && old[i] === next[j]) {
      lines.push(`  ${old[i]}`)
      i++
      j++
    } else if (j < next.length && (i >= old.length || at(common, i, j + 1) > at(common, i + 1, j))) {
      lines.push(`+ ${next[j++]}`)
    } else lines.push(`- ${old[i++]}`)
  }
  return nearChanges(lines).join("\n")
}

/** By position: how many lines the rests have in common. */
function commonLengths(old: readonly string[], next: readonly string[]): number[][] {
  const table = Array.from({ length: old.length + 1 }, () => Array.from(next, () => 0))
  for (let i = old.length - 1; i >= 0; i--)
    for (let j = next.length - 1; j >= 0; j--) {
      const row = table[i]
      if (row)
        row[j] =
          old[i] === next[j]
            ? at(table, i + 1, j + 1) + 1
            : Math.max(at(table, i + 1, j), at(table, i, j + 1))
    }
  return table
}

const at = (table: readonly (readonly number[])[], i: number, j: number): number => table[i]?.[j] ?? 0

function nearChanges(lines: readonly string[]): string[] {
  const context = 3
  return lines.filter((_, index) =>
    lines.slice(Math.max(0, index - context), index + context + 1).some((line) => !line.startsWith("  ")),
  )
}

const secretName = "(?:key|token|secret|password|credential|auth)"
/** A reference to a variable is no secret, nor is the name of one. */
const notSecret = String.raw`(?!\$\{|"UMPIRE_API_KEY")`
const assignment = new RegExp(String.raw`^(.*?${secretName}[\w.-]*\s*=\s*)${notSecret}\S.*$`, "gim")
const member = new RegExp(String.raw`("[^"]*${secretName}[^"]*"\s*:\s*)"(?:[^"\\]|\\.)+"`, "gi")
const addressPassword = /(:\/\/[^\s:@/]*):[^\s@/]+@/g

/** A difference may be pasted or recorded: values that their names or places call secret are left out. */
export const hideSecrets = (text: string): string =>
  text.replace(member, '$1"..."').replace(assignment, "$1...").replace(addressPassword, "$1:...@")
