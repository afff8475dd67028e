/** Finds the version of a question set that a request names, from a cache, so that a request does not wait for the store. */
import type { Clock } from "../../base/clock.ts"
import { type Ticks, ticksOfUsd } from "../../base/money.ts"
import { Fault } from "../../contract/errors.ts"
import { readArtefact } from "../../scoring/teach/artefact.ts"
import { type Change, listenToChanges } from "../../store/changes.ts"
import { FreshCache } from "../../store/fresh-cache.ts"
import {
  decodeContent,
  findSet,
  findVersion,
  listArtefacts,
  type QuestionSet,
  type SetVersion,
} from "../../store/question-sets/sets.ts"
import { type Database, StoreUnavailable } from "../../store/sql.ts"
import { type SetReference, unknownSet } from "../classification/classification.ts"
import { type AskedVersion, compileVersion } from "./version.ts"

interface Shadow {
  /** Null: the version that answers the request. */
  readonly version: number | null
  readonly model: string | null
  readonly share: number
  /** What it may cost in a day. */
  readonly costMaxDay: Ticks
}

export interface FoundSet {
  readonly version: AskedVersion
  /** Of requests for the published version. */
  readonly shadow: Shadow | null
  /** Of all answers, those that are reviewed at random. */
  readonly reviewSampleRate: number
}

export interface Sets {
  /** Throws Fault `unknown_model`, or `routing_failed` while the store is away. */
  find(organizationId: string, reference: SetReference): Promise<FoundSet>
  /** For changes made by this process: the next request sees them. */
  invalidate(change: Change): void
  close(): Promise<void>
}

/** A change made elsewhere is seen within this time even when its notification is lost. */
const freshMs = 15_000
const pointersMax = 10_000
/** Of versions that are kept ready, as JSON with what was taught: one may have a mebibyte, and thousands can be stored. */
const charactersMaxDefault = 64 * 1024 * 1024
const versionsMax = 1024

/** Without the content, which is large. */
type VersionName = Pick<SetVersion, "number" | "hash">

interface Pointer {
  readonly organizationId: string
  readonly set: QuestionSet
  readonly version: VersionName
  readonly isPublished: boolean
}

/** `graceMs` is how long a version goes on being used while the store is away. */
export async function openSets(
  database: Database,
  clock: Clock,
  graceMs: number,
  charactersMax = charactersMaxDefault,
): Promise<Sets> {
  const pointers = new FreshCache<Pointer>(
    { clock, freshMs, staleMs: freshMs + graceMs, entriesMax: pointersMax },
    async (key) => await readPointer(database, key),
  )
  const versions = new VersionCache(database, charactersMax)
  const invalidate = ({ table, id }: Change): void => {
    if (table === "question_sets") pointers.invalidateWhere(({ organizationId }) => organizationId === id)
    else if (table === "organizations")
      pointers.invalidateWhere(({ organizationId }) => organizationId === id)
  }
  const close = await listenToChanges(database, invalidate)
  return {
    async find(organizationId, { name, version }) {
      try {
        const pointer = await pointers.get(JSON.stringify([organizationId, name, version]))
        if (!pointer) throw unknownSet(`set:${name}${version === null ? "" : `@${version}`}`)
        return {
          version: await versions.get(pointer.set, pointer.version),
          shadow: pointer.isPublished ? shadowOf(pointer.set) : null,
          reviewSampleRate: pointer.set.reviewSampleRate,
        }
      } catch (cause) {
        if (!(cause instanceof StoreUnavailable)) throw cause
        throw new Fault("routing_failed", "Cannot classify: the question set cannot be read now", { cause })
      }
    },
    invalidate,
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
  if (!version) return null
  const { number, hash } = version
  return { organizationId, set, version: { number, hash }, isPublished: published?.number === number }
}

function shadowOf(set: QuestionSet): Shadow | null {
  const { shadowVersion: version, shadowModel: model, shadowShare: share } = set
  return share > 0 ? { version, model, share, costMaxDay: ticksOfUsd(set.shadowCostMaxDayUsd) } : null
}

interface KeptVersion {
  readonly loading: Promise<LoadedVersion>
  /** Zero until it is loaded. */
  characters: number
}

/** Versions never change, so they are kept by their hash until others need the room; those used last stay. */
class VersionCache {
  readonly #database: Database
  readonly #charactersMax: number
  readonly #versions = new Map<string, KeptVersion>()
  #characters = 0

  constructor(database: Database, charactersMax: number) {
    this.#database = database
    this.#charactersMax = charactersMax
  }

  async get(set: QuestionSet, version: VersionName): Promise<AskedVersion> {
    const key = `${set.id} ${version.number} ${version.hash} ${set.name}`
    const known = this.#versions.get(key)
    const kept = known ?? { loading: readVersion(this.#database, set, version.number), characters: 0 }
    this.#versions.delete(key)
    this.#versions.set(key, kept)
    try {
      const { asked, characters } = await kept.loading
      if (kept.characters === 0 && this.#versions.get(key) === kept) {
        kept.characters = characters
        this.#characters += characters
        this.#trim()
      }
      return asked
    } catch (error) {
      if (this.#versions.get(key) === kept) this.#versions.delete(key)
      throw error
    }
  }

  #trim(): void {
    for (const [key, { characters }] of this.#versions) {
      if (this.#characters <= this.#charactersMax && this.#versions.size <= versionsMax) return
      this.#versions.delete(key)
      this.#characters -= characters
    }
  }
}

interface LoadedVersion {
  readonly asked: AskedVersion
  /** Of the JSON that it was made of. */
  readonly characters: number
}

async function readVersion(database: Database, set: QuestionSet, number: number): Promise<LoadedVersion> {
  const version = await findVersion(database, set, String(number))
  if (!version) throw unknownSet(`set:${set.name}@${number}`)
  return await compile(database, set, version)
}

/** With what was taught. */
export async function loadVersion(
  database: Database,
  set: QuestionSet,
  version: SetVersion,
): Promise<AskedVersion> {
  return (await compile(database, set, version)).asked
}

async function compile(
  database: Database,
  set: QuestionSet,
  { number, hash, content: text }: SetVersion,
): Promise<LoadedVersion> {
  const content = decodeContent(text)
  const hashes = content.questions.flatMap(({ artefact }) => artefact ?? [])
  const artefacts = await listArtefacts(database, set.id, [...new Set(hashes)])
  const parsed = artefacts.map(({ hash: own, body }) => [own, readArtefact(body)] as const)
  return {
    asked: compileVersion({ setId: set.id, setName: set.name, number, hash }, content, new Map(parsed)),
    characters: artefacts.reduce((sum, { body }) => sum + body.length, text.length),
  }
}
