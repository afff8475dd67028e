/** Finds the version of a question set that a request names, from a cache, so that a request does not wait for the store. */
import type { Clock } from "../../base/clock.ts"
import { Fault } from "../../contract/errors.ts"
import type { TaughtArtefact } from "../../scoring/teach/artefact.ts"
import { type Change, listenToChanges } from "../../store/changes.ts"
import { FreshCache } from "../../store/fresh-cache.ts"
import { decodeContent } from "../../store/question-sets/content.ts"
import {
  type QuestionSet,
  type SetVersion,
  findSet,
  findVersion,
  listArtefacts,
} from "../../store/question-sets/sets.ts"
import { type Database, StoreUnavailable } from "../../store/sql.ts"
import { type SetReference, unknownSet } from "./reference.ts"
import { type AskedVersion, compileVersion } from "./version.ts"

export interface Shadow {
  /** Null: the version that answers the request. */
  readonly version: number | null
  readonly model: string | null
  readonly share: number
}

export interface FoundSet {
  readonly version: AskedVersion
  /** Of requests for the published version. */
  readonly shadow: Shadow | null
}

export interface Sets {
  /** Throws Fault `unknown_model`, or `routing_failed` while the store is away. */
  find(organizationId: string, reference: SetReference): Promise<FoundSet>
  /** For changes made by this process: the next request sees them. */
  forget(change: Change): void
  close(): Promise<void>
}

/** A change made elsewhere is seen within this time even when its notification is lost. */
const freshMs = 15_000
const pointersMax = 10_000
/** Versions with what was taught: some hundred kilobytes each at most. */
const versionsMax = 256

interface Pointer {
  readonly organizationId: string
  readonly set: QuestionSet
  readonly version: SetVersion
  readonly isPublished: boolean
}

/** `graceMs` is how long a version goes on being used while the store is away. */
export async function openSets(database: Database, clock: Clock, graceMs: number): Promise<Sets> {
  const pointers = new FreshCache<Pointer>(
    { clock, freshMs, staleMs: freshMs + graceMs, entriesMax: pointersMax },
    async (key) => await readPointer(database, key),
  )
  const versions = new VersionCache(database)
  const forget = ({ table, id }: Change): void => {
    if (table === "question_sets") pointers.forgetWhere(({ organizationId }) => organizationId === id)
    else if (table === "organizations") pointers.forgetWhere(({ organizationId }) => organizationId === id)
  }
  const close = await listenToChanges(database, forget)
  return {
    async find(organizationId, { name, version }) {
      try {
        const pointer = await pointers.get(JSON.stringify([organizationId, name, version]))
        if (!pointer) throw unknownSet(`set:${name}${version === null ? "" : `@${version}`}`)
        return {
          version: await versions.get(pointer.set, pointer.version),
          shadow: pointer.isPublished ? shadowOf(pointer.set) : null,
        }
      } catch (cause) {
        if (!(cause instanceof StoreUnavailable)) throw cause
        throw new Fault("routing_failed", "Cannot classify: the question set cannot be read now", { cause })
      }
    },
    forget,
    close,
  }
}

async function readPointer(database: Database, key: string): Promise<Pointer | null> {
  // Made by `find` above.
  const [organizationId, name, reference] = JSON.parse(key) as [string, string, string | null]
  const set = await findSet(database, organizationId, name)
  if (!set) return null
  const published = await findVersion(database, set, "production")
  const version =
    reference === null
      ? (published ?? (await findVersion(database, set, "latest")))
      : await findVersion(database, set, reference)
  return version && { organizationId, set, version, isPublished: published?.number === version.number }
}

function shadowOf({ shadowVersion, shadowModel, shadowShare }: QuestionSet): Shadow | null {
  return shadowShare > 0 ? { version: shadowVersion, model: shadowModel, share: shadowShare } : null
}

/** Versions never change, so they are kept by their hash until others need the room; those used last stay. */
class VersionCache {
  readonly #database: Database
  readonly #versions = new Map<string, Promise<AskedVersion>>()

  constructor(database: Database) {
    this.#database = database
  }

  async get(set: QuestionSet, version: SetVersion): Promise<AskedVersion> {
    const key = `${set.id} ${version.number} ${version.hash} ${set.name}`
    const loading = this.#versions.get(key) ?? loadVersion(this.#database, set, version)
    this.#versions.delete(key)
    this.#versions.set(key, loading)
    const oldest = this.#versions.keys().next().value
    if (this.#versions.size > versionsMax && oldest !== undefined) this.#versions.delete(oldest)
    try {
      return await loading
    } catch (error) {
      if (this.#versions.get(key) === loading) this.#versions.delete(key)
      throw error
    }
  }
}

/** With what was taught. */
export async function loadVersion(
  database: Database,
  set: QuestionSet,
  { number, hash, content: text }: SetVersion,
): Promise<AskedVersion> {
  const content = decodeContent(text)
  const hashes = content.questions.flatMap(({ artefact }) => artefact ?? [])
  const artefacts = await listArtefacts(database, set.id, [...new Set(hashes)])
  // Written by the job that taught them.
  const parsed = artefacts.map(({ hash: own, body }) => [own, JSON.parse(body) as TaughtArtefact] as const)
  return compileVersion({ setId: set.id, setName: set.name, number, hash }, content, new Map(parsed))
}
