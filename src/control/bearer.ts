/** The forms of a bearer value, and the comparison of secrets. */
import { hash, timingSafeEqual } from "node:crypto"
import { newSecret } from "../base/ids.ts"

const keyForm = /^ump_([0-9A-Za-z-]{1,64})_([0-9A-Za-z_-]{16,256})$/
const sessionForm = /^ums_([0-9A-Za-z_-]{16,256})$/
const workloadForm = /^[\w-]{8,}\.[\w-]{8,}\.[\w-]{8,}$/

export type Bearer =
  | { readonly kind: "key"; readonly keyId: string; readonly secret: string }
  | { readonly kind: "session"; readonly secret: string }
  | { readonly kind: "workload"; readonly token: string }

export function parseBearer(value: string): Bearer | null {
  const [, id, keySecret] = keyForm.exec(value) ?? []
  if (id !== undefined && keySecret !== undefined)
    return { kind: "key", keyId: `key_${id}`, secret: keySecret }
  const [, sessionSecret] = sessionForm.exec(value) ?? []
  if (sessionSecret !== undefined) return { kind: "session", secret: sessionSecret }
  return workloadForm.test(value) ? { kind: "workload", token: value } : null
}

/** A fresh key value; only its hash is ever stored. */
export function newKeyValue(keyId: string): { readonly value: string; readonly secretHash: Uint8Array } {
  const secret = newSecret()
  return { value: `ump_${keyId.slice("key_".length)}_${secret}`, secretHash: hashSecret(secret) }
}

export const hashSecret = (secret: string): Uint8Array => hash("sha256", secret, "buffer")

/** Compares hashes, in a time that does not tell how much of them is alike. */
export const sameHash = (given: Uint8Array, known: Uint8Array): boolean => timingSafeEqual(given, known)
