/** The evaluation of a user in an organization. It lives beside the pages, so that leaving its page stops and loses nothing. */
import { useSyncExternalStore } from "react"
import { sentenceOf } from "../api.ts"
import { atSignOut, useOrganization, useSession } from "../session.ts"
import { type Plan, guessPlan } from "./plan.ts"
import { type Rows, readRows } from "./rows.ts"
import { type Progress, noProgress, runPlan } from "./run.ts"

interface Evaluation {
  readonly file: { readonly name: string; readonly rows: Rows } | null
  readonly plan: Plan | null
  /** Why the last file was refused. */
  readonly error: string | null
  readonly progress: Progress | null
  /** The plan that the progress is of. */
  readonly ran: Plan | null
  readonly running: AbortController | null
}

const nothing: Evaluation = { file: null, plan: null, error: null, progress: null, ran: null, running: null }

const evaluations = new Map<string, Evaluation>()
const watchers = new Set<() => void>()

const read = (key: string): Evaluation => evaluations.get(key) ?? nothing

function change(key: string, next: Partial<Evaluation>): void {
  evaluations.set(key, { ...read(key), ...next })
  for (const watcher of watchers) watcher()
}

atSignOut(() => {
  for (const { running } of evaluations.values()) running?.abort()
  evaluations.clear()
  for (const watcher of watchers) watcher()
})

/** The browser asks before a window is closed in which rows are still being answered. */
addEventListener("beforeunload", (event) => {
  if ([...evaluations.values()].some(({ running }) => running !== null)) event.preventDefault()
})

async function start(key: string, orgId: string, plan: Plan, rows: Rows): Promise<void> {
  const controller = new AbortController()
  change(key, { running: controller, ran: plan, progress: noProgress })
  const mine = (): boolean => read(key).running === controller
  await runPlan(plan, rows, orgId, controller.signal, (progress) => mine() && change(key, { progress }))
  if (mine()) change(key, { running: null })
}

function take(key: string, name: string, text: string, instructions: string): void {
  try {
    const rows = readRows(text, name)
    read(key).running?.abort()
    change(key, { ...nothing, file: { name, rows }, plan: { ...guessPlan(rows, ""), instructions } })
  } catch (failure) {
    change(key, { error: sentenceOf(failure) })
  }
}

export function useEvaluation() {
  const { id: orgId } = useOrganization()
  const key = `${useSession()?.user.id ?? ""} ${orgId}`
  const evaluation = useSyncExternalStore(watch, () => read(key))
  return {
    ...evaluation,
    busy: evaluation.running !== null,
    take: (name: string, text: string, instructions = "") => take(key, name, text, instructions),
    setPlan: (plan: Plan) => change(key, { plan }),
    setError: (error: string) => change(key, { error }),
    start: (plan: Plan, rows: Rows) => void start(key, orgId, plan, rows),
    cancel: () => evaluation.running?.abort(),
  }
}

function watch(watcher: () => void): () => void {
  watchers.add(watcher)
  return () => void watchers.delete(watcher)
}
