/**
 * What WebAuthn (level 2, sections 7.1 and 7.2) checks of a passkey without attestation. The signature is OpenSSL's to check;
 * browsers give the public key as SubjectPublicKeyInfo, so nothing here reads CBOR.
 */
import { type KeyObject, createHash, createPublicKey, verify } from "node:crypto"
import { z } from "zod"
import { parsedJson } from "../base/json.ts"

/** Where browsers use the passkeys of an installation. */
export interface RelyingParty {
  readonly id: string
  readonly origin: string
}

/** The challenge that was signed, where the client data is of this kind and place; null where it is not. */
export function challengeOf(
  clientData: Uint8Array,
  kind: "create" | "get",
  { origin }: RelyingParty,
): Uint8Array | null {
  const read = ClientData.safeParse(parsedJson(Buffer.from(clientData).toString())).data
  if (!read || read.type !== `webauthn.${kind}` || read.origin !== origin || read.crossOrigin === true)
    return null
  return Buffer.from(read.challenge, "base64url")
}

const ClientData = z.object({
  type: z.string(),
  challenge: z.string(),
  origin: z.string(),
  crossOrigin: z.boolean().optional(),
})

interface AuthenticatorData {
  readonly signCount: bigint
  /** Of a new credential only, in base64url. */
  readonly credentialId: string | null
}

const flagUserPresent = 1
const flagUserVerified = 4
const flagCredential = 64
const headBytes = 37
const aaguidBytes = 16
const credentialIdBytesMax = 1023

/** Null where it is of another host, or the device did not ask who holds it (a finger, a face, a PIN). */
export function readAuthenticatorData(bytes: Uint8Array, { id }: RelyingParty): AuthenticatorData | null {
  const data = Buffer.from(bytes)
  if (data.length < headBytes || !data.subarray(0, 32).equals(sha256(Buffer.from(id)))) return null
  const flags = data.readUInt8(32)
  const wanted = flagUserPresent | flagUserVerified
  if ((flags & wanted) !== wanted) return null
  const signCount = BigInt(data.readUInt32BE(33))
  if ((flags & flagCredential) === 0) return { signCount, credentialId: null }
  const lengthAt = headBytes + aaguidBytes
  if (data.length < lengthAt + 2) return null
  const length = data.readUInt16BE(lengthAt)
  const credentialId = data.subarray(lengthAt + 2, lengthAt + 2 + length)
  if (length === 0 || length > credentialIdBytesMax || credentialId.length < length) return null
  return { signCount, credentialId: credentialId.toString("base64url") }
}

const rsaBitsMin = 2048

/** Null where it is no key of `passkeyAlgorithms`. */
export function readPublicKey(spki: Uint8Array): KeyObject | null {
  try {
    const key = createPublicKey({ key: Buffer.from(spki), format: "der", type: "spki" })
    const { namedCurve, modulusLength = 0 } = key.asymmetricKeyDetails ?? {}
    switch (key.asymmetricKeyType) {
      case "ec":
        return namedCurve === "prime256v1" ? key : null
      case "rsa":
        return modulusLength >= rsaBitsMin ? key : null
      case "ed25519":
        return key
      default:
        return null
    }
  } catch {
    return null
  }
}

export function isSigned(
  key: KeyObject,
  { authenticatorData, clientData }: { authenticatorData: Uint8Array; clientData: Uint8Array },
  signature: Uint8Array,
): boolean {
  const signed = Buffer.concat([authenticatorData, sha256(clientData)])
  try {
    return verify(key.asymmetricKeyType === "ed25519" ? null : "sha256", signed, key, signature)
  } catch {
    return false
  }
}

const sha256 = (bytes: Uint8Array): Buffer => createHash("sha256").update(bytes).digest()
