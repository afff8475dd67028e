/** The keys that workload tokens are signed with: each process makes its own, keeps the private half in memory, and publishes the public half. */
import type { CryptoKey, JWK } from "jose"
import { setTimeout as wait } from "node:timers/promises"
import type { Clock } from "../../base/clock.ts"
import type { Change } from "../../store/changes.ts"
import {
  type SigningKey,
  deleteExpiredSigningKeys,
  insertSigningKey,
  listSigningKeys,
} from "../../store/identity-providers.ts"
import { type Database, StoreUnavailable } from "../../store/sql.ts"
import { jose } from "./jose.ts"

export const signingAlgorithm = "EdDSA"

/** How long a process signs with one key. */
const signingMs = 24 * 3_600_000
/** Tokens live for an hour at most; a key must be known until the last of them has expired. */
const verifyingMs = signingMs + 3_600_000 + 60_000
const freshMs = 15_000
const staleMs = 300_000
/** However many tokens name keys that do not exist, the store is asked this often at most. */
const rereadMs = 250
const keyIdForm = /^[\w-]{43}$/

interface OwnKey {
  readonly id: string
  readonly privateKey: CryptoKey
  readonly untilMs: number
}

export interface SigningKeys {
  /** The key to sign with now. */
  own(): Promise<OwnKey>
  /** The public key of this id, whichever gateway made it, or null. */
  find(id: string): Promise<CryptoKey | null>
  /** What others check our tokens with. */
  published(): Promise<JWK[]>
  invalidate(change: Change): void
}

interface Loaded {
  readonly atMs: number
  readonly keys: ReadonlyMap<string, { readonly key: CryptoKey; readonly stored: SigningKey }>
}

export function createSigningKeys(database: Database, clock: Clock): SigningKeys {
  let own: Promise<OwnKey> | null = null
  let ownUntilMs = 0
  let loaded: Loaded = { atMs: -Infinity, keys: new Map() }
  let loading: Promise<void> | null = null

  const load = async (): Promise<void> => {
    // Counted from before the statement: what is published while it runs is not in it for certain.
    const atMs = clock.monotonicMs()
    const stored = await listSigningKeys(database, new Date(clock.nowMs()))
    const entries = await Promise.all(
      stored.map(async (one) => [one.id, { key: await importPublic(one), stored: one }] as const),
    )
    loaded = { atMs, keys: new Map(entries) }
  }
  const reload = async (): Promise<void> => {
    loading ??= load().finally(() => (loading = null))
    await loading
  }
  /** Keys that were read a moment ago; older ones only while the store is unavailable. */
  const current = async (): Promise<Loaded["keys"]> => {
    const ageMs = clock.monotonicMs() - loaded.atMs
    if (ageMs >= freshMs)
      await reload().catch((error: unknown) => {
        if (!(error instanceof StoreUnavailable) || ageMs >= staleMs) throw error
      })
    return loaded.keys
  }

  return {
    async own() {
      if (own && clock.nowMs() < ownUntilMs) return await own
      ownUntilMs = clock.nowMs() + signingMs
      const made = (own = makeKey(database, clock.nowMs()))
      // A key that could not be published signs nothing.
      made.catch(() => own === made && (own = null))
      return await made
    },
    async find(id) {
      if (!keyIdForm.test(id)) return null
      const known = (await current()).get(id)
      if (known) return known.key
      const sinceMs = clock.monotonicMs() - loaded.atMs
      if (sinceMs < rereadMs) await wait(rereadMs - sinceMs)
      // Someone else may have read meanwhile, later than this token came.
      if (clock.monotonicMs() - loaded.atMs >= rereadMs) await reload()
      return loaded.keys.get(id)?.key ?? null
    },
    async published() {
      return [...(await current()).values()].map(({ stored }) => ({ ...stored.publicJwk }))
    },
    invalidate({ table }) {
      if (table === "workload_signing_keys") loaded = { ...loaded, atMs: -Infinity }
    },
  }
}

async function makeKey(database: Database, nowMs: number): Promise<OwnKey> {
  const { calculateJwkThumbprint, exportJWK, generateKeyPair } = jose()
  const { publicKey, privateKey } = await generateKeyPair(signingAlgorithm)
  const jwk = await exportJWK(publicKey)
  const id = await calculateJwkThumbprint(jwk)
  await deleteExpiredSigningKeys(database, new Date(nowMs))
  await insertSigningKey(database, {
    id,
    publicJwk: { ...jwk, kid: id, alg: signingAlgorithm, use: "sig" },
    createdAt: new Date(nowMs),
    expiresAt: new Date(nowMs + verifyingMs),
  })
  return { id, privateKey, untilMs: nowMs + signingMs }
}

async function importPublic({ publicJwk }: SigningKey): Promise<CryptoKey> {
  const key = await jose().importJWK(publicJwk, signingAlgorithm)
  if (key instanceof Uint8Array) throw new Error("Cannot use a signing key: it is symmetric")
  return key
}
