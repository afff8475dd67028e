/** `umpire doctor`: checks the machine and says what to do about what it finds. */
import { type CliContext, type Command, flagOption } from "./command.ts"
import { printable } from "./table.ts"

export interface Finding {
  readonly name: string
  readonly state: "ok" | "note" | "bad"
  readonly found: string
  /** What to do; only where something should be done. */
  readonly advice?: string
}

type Examine = (context: CliContext) => Promise<readonly Finding[]>

const marks = { ok: "✓", note: "•", bad: "✗" } as const

export const doctor = (examine: Examine): Command => ({
  usage: ["umpire doctor [--json]"],
  options: { json: flagOption("print JSON") },
  run: async (context) => {
    const findings = await examine(context)
    context.stdout.write(context.values["json"] === true ? `${JSON.stringify(findings)}\n` : draw(findings))
    return findings.some(({ state }) => state === "bad") ? 1 : 0
  },
})

function draw(findings: readonly Finding[]): string {
  const width = Math.max(...findings.map(({ name }) => name.length))
  const lines = findings.flatMap(({ name, state, found, advice }) => [
    `${marks[state]} ${name.padEnd(width)}  ${printable(found)}`,
    ...(advice === undefined ? [] : [`  ${" ".repeat(width)}  -> ${printable(advice)}`]),
  ])
  return `${lines.join("\n")}\n`
}
