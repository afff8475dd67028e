/** Values that travel through a browser and come back unread and unchanged, or not at all. */
import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto"

const cipher = "aes-256-gcm"
const nonceBytes = 12
const tagBytes = 16
export const sealKeyBytes = 32

export function seal(key: Uint8Array, value: unknown): string {
  const nonce = randomBytes(nonceBytes)
  const sealing = createCipheriv(cipher, key, nonce)
  const sealed = Buffer.concat([sealing.update(JSON.stringify(value), "utf8"), sealing.final()])
  return Buffer.concat([nonce, sealing.getAuthTag(), sealed]).toString("base64url")
}

/** Null when it was not sealed with this key, or was changed. */
export function unseal(key: Uint8Array, text: string): unknown {
  const bytes = Buffer.from(text, "base64url")
  if (bytes.length <= nonceBytes + tagBytes) return null
  try {
    const opening = createDecipheriv(cipher, key, bytes.subarray(0, nonceBytes))
    opening.setAuthTag(bytes.subarray(nonceBytes, nonceBytes + tagBytes))
    const opened = Buffer.concat([opening.update(bytes.subarray(nonceBytes + tagBytes)), opening.final()])
    return JSON.parse(opened.toString("utf8"))
  } catch {
    return null
  }
}
