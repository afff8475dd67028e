/** Keeps drafts: in the address to share them, and in this browser to come back to them. */
import type { BrowserStorage } from "../parts/storage.ts"
import type { Answer, Draft, DraftQuestion } from "./draft.ts"
import { questionTypes, rowId } from "./draft.ts"
import { t } from "../i18n/translate.ts"

/** Longer addresses are cut by chat programs and proxies. */
const sharedCharactersMax = 30_000
const historyEntriesMax = 30
const historyCharactersMax = 1_000_000
const historyEntry = "history"
const draftEntry = "draft"

/** The draft as text for the fragment of an address, which browsers keep to themselves. */
export const packDraft = async (draft: Draft): Promise<string> => await packJson(draft)

/** Null when the text is not a draft. */
export const unpackDraft = async (shared: string): Promise<Draft | null> =>
  readDraft(await unpackJson(shared))

/** Ids of rows are left out: they are made anew. */
export async function packJson(value: unknown): Promise<string> {
  const json = JSON.stringify(value, (key, one: unknown) => (key === "id" ? undefined : one))
  const packed = await through(new TextEncoder().encode(json), new CompressionStream("deflate-raw"))
  const text = btoa(Array.from(packed, (byte) => String.fromCharCode(byte)).join(""))
  const shared = text.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")
  if (shared.length > sharedCharactersMax)
    throw new Error(t("This is too long for a link: share less text, or send the code instead."))
  return shared
}

/** Null when the text was not packed. */
export async function unpackJson(shared: string): Promise<unknown> {
  try {
    if (shared.length > sharedCharactersMax) return null
    const bytes = Uint8Array.from(atob(shared.replaceAll("-", "+").replaceAll("_", "/")), (character) =>
      character.charCodeAt(0),
    )
    const json = await through(bytes, new DecompressionStream("deflate-raw"))
    return JSON.parse(new TextDecoder().decode(json)) as unknown
  } catch {
    return null
  }
}

async function through(
  bytes: Uint8Array<ArrayBuffer>,
  stream: CompressionStream | DecompressionStream,
): Promise<Uint8Array> {
  return new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(stream)).arrayBuffer())
}

/** Takes what has the shape of a draft and nothing else: it may come from a stranger's link or an older version. */
export function readDraft(given: unknown): Draft | null {
  if (typeof given !== "object" || given === null) return null
  const { api, model, rival, evidence, questions } = given as Record<string, unknown>
  if (typeof evidence !== "string" || !Array.isArray(questions)) return null
  return {
    api: api === "systemone" ? "systemone" : "decisions",
    model: text(model),
    rival: typeof rival === "string" ? rival : null,
    evidence,
    questions: questions.flatMap(readQuestion),
  }
}

function readQuestion(given: unknown): DraftQuestion[] {
  if (typeof given !== "object" || given === null) return []
  const { type, name, instructions, options } = given as Record<string, unknown>
  const known = questionTypes.find((one) => one === type)
  if (!known) return []
  const rows = Array.isArray(options)
    ? (options as { value?: unknown; description?: unknown; boolean?: unknown }[])
    : []
  return [
    {
      id: rowId(),
      type: known,
      name: text(name),
      instructions: text(instructions),
      options: rows.map((row) => ({
        id: rowId(),
        value: text(row?.value),
        description: text(row?.description),
        boolean: row?.boolean === true,
      })),
    },
  ]
}

const text = (value: unknown): string => (typeof value === "string" ? value : "")

interface Past {
  readonly at: number
  readonly draft: Draft
  readonly answers: readonly (Answer | null)[]
}

export function readHistory(storage: BrowserStorage): Past[] {
  const entries = storage.read(historyEntry)
  if (!Array.isArray(entries)) return []
  return entries.flatMap((entry: { at?: unknown; draft?: unknown; answers?: unknown }) => {
    const draft = readDraft(entry?.draft)
    if (!draft || typeof entry.at !== "number" || !Array.isArray(entry.answers)) return []
    return [{ at: entry.at, draft, answers: entry.answers as (Answer | null)[] }]
  })
}

export function addToHistory(storage: BrowserStorage, past: Past): Past[] {
  let entries = [past, ...readHistory(storage)].slice(0, historyEntriesMax)
  while (entries.length > 1 && JSON.stringify(entries).length > historyCharactersMax)
    entries = entries.slice(0, -1)
  storage.write(historyEntry, entries)
  return entries
}

export const clearHistory = (storage: BrowserStorage): void => storage.remove(historyEntry)
export const keepDraft = (storage: BrowserStorage, draft: Draft): void => storage.write(draftEntry, draft)
export const keptDraft = (storage: BrowserStorage): Draft | null => readDraft(storage.read(draftEntry))
