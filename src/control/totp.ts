/** Time-based one-time passwords (RFC 6238) as authenticator apps make them: SHA-1, six digits, 30 seconds. */
import { createHmac, timingSafeEqual } from "node:crypto"

const stepSeconds = 30
const digits = 6
/** A clock may be one step off. */
const driftSteps = 1

export const stepAt = (nowMs: number): number => Math.floor(nowMs / 1000 / stepSeconds)

/** HOTP (RFC 4226) of the step. */
export function codeAt(secret: Uint8Array, step: number, length = digits): string {
  const counter = Buffer.alloc(8)
  counter.writeBigUInt64BE(BigInt(step))
  const mac = createHmac("sha1", secret).update(counter).digest()
  const offset = (mac.at(-1) ?? 0) & 0x0f
  const number = mac.readUInt32BE(offset) & 0x7fff_ffff
  return String(number % 10 ** length).padStart(length, "0")
}

/** The step whose code it is; null where it is none of those near. All are compared, whichever it is. */
export function matchingStep(secret: Uint8Array, code: string, nowMs: number): number | null {
  const given = Buffer.from(code)
  let found: number | null = null
  for (let step = stepAt(nowMs) - driftSteps; step <= stepAt(nowMs) + driftSteps; step++) {
    const expected = Buffer.from(codeAt(secret, step))
    if (given.length === expected.length && timingSafeEqual(given, expected)) found = step
  }
  return found
}

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"

/** Base32 (RFC 4648) without padding: what people type where they cannot scan. */
export function base32(bytes: Uint8Array): string {
  const bits = Array.from(bytes, (byte) => byte.toString(2).padStart(8, "0")).join("")
  return (bits.match(/.{1,5}/g) ?? [])
    .map((five) => alphabet[Number.parseInt(five.padEnd(5, "0"), 2)])
    .join("")
}

/** What a QR code of an authenticator app holds. */
export function otpauthUri(
  secret: Uint8Array,
  { issuer, account }: { issuer: string; account: string },
): string {
  const label = `${encodeURIComponent(issuer)}:${encodeURIComponent(account)}`
  return `otpauth://totp/${label}?secret=${base32(secret)}&issuer=${encodeURIComponent(issuer)}`
}
