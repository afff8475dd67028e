/** `label_file` of `umpire mcp`: reads a file below one directory, and asks the server about its rows, some at a time. */
import { open, realpath } from "node:fs/promises"
import { relative, resolve, sep } from "node:path"
import { z } from "zod"
import { formatOf, readTextRows, rowFormats, textFieldDefault } from "../base/text-rows.ts"
import { labelledRowsMax } from "../contract/mcp.ts"
import type { Ask } from "./mcp.ts"

export const fileBytesMax = 8 * 1024 * 1024
export const fileRowsMax = 1000
/** Rows that an answer shows; all are in the output file. */
const shownRowsMax = 100

const Arguments = z.strictObject({
  set: z.string().min(1),
  path: z.string().min(1),
  format: z.enum(rowFormats).optional(),
  field: z.string().min(1).optional(),
  output: z.string().min(1).optional(),
})

const text = (description: string) => ({ type: "string", description })

export const localLabelTool = {
  name: "label_file",
  title: "Label a file",
  description: `Asks a published question set about every row of a local file, at most ${fileRowsMax} rows. Each row is charged as one decision.`,
  inputSchema: {
    type: "object",
    properties: {
      set: text("The name of the question set; list_sets names them"),
      path: text("The file, below the directory that umpire mcp was started in: lines, .jsonl or .csv"),
      format: { type: "string", enum: rowFormats, description: "When the file's name does not tell" },
      field: text(`The field with the text, of .jsonl and .csv; ${textFieldDefault} when left out`),
      output: text("A new .jsonl file for the answers; it must not exist"),
    },
    required: ["set", "path"],
    additionalProperties: false,
  },
  annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: false },
}

const Labelled = z.object({
  structuredContent: z.object({
    version: z.int(),
    rows: z.array(z.object({ row: z.int(), answers: z.array(Answer()) })),
    usage: z.object({ input_tokens: z.int() }),
  }),
})

function Answer() {
  return z.looseObject({ question: z.string(), verdict: z.union([z.string(), z.number(), z.boolean()]) })
}

/** A mistake that the model is told of. */
class Mistake extends Error {}

export async function labelLocalFile(
  root: string,
  given: unknown,
  { ask, signal }: { ask: Ask; signal: AbortSignal },
): Promise<unknown> {
  try {
    const parsed = Arguments.safeParse(given)
    if (!parsed.success) throw new Mistake("the arguments must be set, path, format, field and output")
    const { set, path, field, output } = parsed.data
    const content = await readBelow(root, path)
    const format = parsed.data.format ?? formatOf(path)
    const texts = readTextRows(content, format, { field, rowsMax: fileRowsMax })
    const target = output === undefined ? null : await openNew(root, output)
    try {
      const result = await label(set, texts, { ask, signal })
      if ("refusal" in result) return result.refusal
      await target?.writeFile(result.rows.map((row) => `${JSON.stringify(row)}\n`).join(""))
      return told(set, result, output)
    } finally {
      await target?.close()
    }
  } catch (error) {
    if (!(error instanceof Mistake) && !(error instanceof Error && error.name === "UnreadableRows"))
      throw error
    return { content: [{ type: "text", text: `Cannot label the file: ${error.message}` }], isError: true }
  }
}

interface Labels {
  readonly version: number
  readonly rows: readonly {
    row: number
    text: string
    answers: readonly z.infer<ReturnType<typeof Answer>>[]
  }[]
  readonly inputTokens: number
}

async function label(
  set: string,
  texts: readonly string[],
  { ask, signal }: { ask: Ask; signal: AbortSignal },
): Promise<Labels | { readonly refusal: unknown }> {
  const rows: Labels["rows"][number][] = []
  let version = 0
  let inputTokens = 0
  for (let start = 0; start < texts.length; start += labelledRowsMax) {
    const part = texts.slice(start, start + labelledRowsMax)
    const content = part.map((one) => JSON.stringify({ text: one })).join("\n")
    const given = { name: "label_file", arguments: { set, content, format: "jsonl" } }
    const answered = await ask("tools/call", given, signal)
    const labelled = Labelled.safeParse(answered)
    // The server's own words say what is wrong.
    if (!labelled.success) return { refusal: answered }
    const { structuredContent: found } = labelled.data
    version = found.version
    inputTokens += found.usage.input_tokens
    for (const { row, answers } of found.rows) rows.push({ row: start + row, text: part[row] ?? "", answers })
  }
  return { version, rows, inputTokens }
}

function told(set: string, { version, rows, inputTokens }: Labels, output: string | undefined): unknown {
  const counts: Record<string, Record<string, number>> = {}
  for (const { answers } of rows)
    for (const { question, verdict } of answers) {
      const own = (counts[question] ??= {})
      own[String(verdict)] = (own[String(verdict)] ?? 0) + 1
    }
  const structured = {
    set,
    version,
    labelled: rows.length,
    counts,
    ...(output === undefined ? {} : { output }),
    rows: rows.slice(0, shownRowsMax).map(({ row, answers }) => ({ row, answers })),
    usage: { input_tokens: inputTokens },
  }
  return { content: [{ type: "text", text: JSON.stringify(structured) }], structuredContent: structured }
}

/** Links are followed first: what is read stands below the directory. */
async function readBelow(root: string, path: string): Promise<string> {
  const real = await realpath(resolve(root, path)).catch(() => null)
  if (real === null || !isBelow(await realpath(root), real)) throw new Mistake(`there is no file ${path}`)
  const file = await open(real, "r")
  try {
    const stats = await file.stat()
    if (!stats.isFile()) throw new Mistake(`${path} is not a file`)
    if (stats.size > fileBytesMax) throw new Mistake(`${path} has more than ${fileBytesMax} bytes`)
    return await file.readFile("utf8")
  } finally {
    await file.close()
  }
}

async function openNew(root: string, path: string) {
  const place = resolve(root, path)
  const folder = await realpath(resolve(place, "..")).catch(() => null)
  const base = await realpath(root)
  if (folder === null || !(folder === base || isBelow(base, folder)))
    throw new Mistake(`${path} is outside the directory`)
  return await open(place, "wx").catch(() => {
    throw new Mistake(`${path} exists, or cannot be written`)
  })
}

function isBelow(root: string, path: string): boolean {
  const way = relative(root, path)
  return way !== "" && way !== ".." && !way.startsWith(`..${sep}`) && resolve(root, way) === path
}
