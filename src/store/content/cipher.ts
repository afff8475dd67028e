/**
 * Encrypts kept content. The keys are the installation's: the first encrypts, every one decrypts, so that a key can be
 * replaced while what it encrypted is still there.
 *
 * Each record has an AES-256 key of its own, derived from the installation's by HMAC-SHA-256, so that no number of records
 * comes near the limit of random nonces under one key. The organization and the sequence are authenticated with the text:
 * what is moved to another row cannot be read there.
 */
import { createCipheriv, createDecipheriv, createHash, createHmac, randomBytes } from "node:crypto"

export const contentKeyBytes = 32
const cipher = "aes-256-gcm"
const format = 1
const keyIdBytes = 4
const nonceBytes = 12
const tagBytes = 16
/** Before the encrypted text. */
export const sealedHeadBytes = 1 + keyIdBytes + nonceBytes + tagBytes

/** Whose content it is, and of which request. */
export interface ContentPlace {
  readonly organizationId: string
  readonly seqId: string
}

export interface ContentCipher {
  /** False: the installation has no key, and nothing can be kept. */
  readonly isAvailable: boolean
  /** For threads, which make the same cipher of them. */
  readonly keys: readonly Uint8Array[]
  seal(place: ContentPlace, text: string): Buffer
  /** Null when none of the keys opens it, or it was changed, or it is not of this place. */
  open(place: ContentPlace, sealed: Uint8Array): string | null
  /** Of a caller's own reference, under each of the keys; the first is the one to store. */
  referenceHashes(organizationId: string, reference: string): readonly string[]
}

export function createContentCipher(keys: readonly Uint8Array[]): ContentCipher {
  for (const key of keys)
    if (key.length !== contentKeyBytes)
      throw new RangeError(
        `Cannot use a content key: it has ${key.length} bytes and needs ${contentKeyBytes}`,
      )
  const [first] = keys
  const ids = keys.map((key) => createHash("sha256").update(key).digest().subarray(0, keyIdBytes))
  return {
    isAvailable: first !== undefined,
    keys,
    seal(place, text) {
      if (!first || !ids[0]) throw new Error("Cannot encrypt content: the installation has no content key")
      const nonce = randomBytes(nonceBytes)
      const sealing = createCipheriv(cipher, recordKey(first, place), nonce)
      sealing.setAAD(placeBytes(place))
      const sealed = [sealing.update(text, "utf8"), sealing.final()]
      return Buffer.concat([Buffer.of(format), ids[0], nonce, sealing.getAuthTag(), ...sealed])
    },
    open(place, sealed) {
      if (sealed.length < sealedHeadBytes || sealed[0] !== format) return null
      const bytes = Buffer.from(sealed.buffer, sealed.byteOffset, sealed.length)
      const id = bytes.subarray(1, 1 + keyIdBytes)
      const candidates = keys.filter((_, at) => ids[at]?.equals(id))
      for (const key of candidates) {
        const text = openWith(key, place, bytes)
        if (text !== null) return text
      }
      return null
    },
    referenceHashes: (organizationId, reference) =>
      keys.map((key) => hmac(key, "reference", organizationId, reference).toString("hex")),
  }
}

function openWith(key: Uint8Array, place: ContentPlace, bytes: Buffer): string | null {
  const nonceAt = 1 + keyIdBytes
  try {
    const opening = createDecipheriv(
      cipher,
      recordKey(key, place),
      bytes.subarray(nonceAt, nonceAt + nonceBytes),
    )
    opening.setAAD(placeBytes(place))
    opening.setAuthTag(bytes.subarray(nonceAt + nonceBytes, sealedHeadBytes))
    return Buffer.concat([opening.update(bytes.subarray(sealedHeadBytes)), opening.final()]).toString("utf8")
  } catch {
    // Another key, or changed bytes: the cipher says no more than that.
    return null
  }
}

const placeBytes = ({ organizationId, seqId }: ContentPlace): Buffer =>
  Buffer.from(JSON.stringify([organizationId, seqId]))

const recordKey = (key: Uint8Array, { organizationId, seqId }: ContentPlace): Buffer =>
  hmac(key, "record", organizationId, seqId)

/** Lists are written as JSON, so that no two of them are the same bytes. */
const hmac = (key: Uint8Array, ...words: readonly string[]): Buffer =>
  createHmac("sha256", key).update(JSON.stringify(words)).digest()

/** No JSON and no secret begins like this. */
export const sealedMark = "sealed:"

/** For a column of text: encrypted where the installation has a key, as it is where it has none. */
export function sealText(content: ContentCipher, place: ContentPlace, text: string): string {
  return content.isAvailable ? sealedMark + content.seal(place, text).toString("base64") : text
}

/** What `sealText` made, or was stored before there was a key; null when it cannot be decrypted. */
export function openText(content: ContentCipher, place: ContentPlace, stored: string): string | null {
  if (!stored.startsWith(sealedMark)) return stored
  return content.open(place, Buffer.from(stored.slice(sealedMark.length), "base64"))
}
