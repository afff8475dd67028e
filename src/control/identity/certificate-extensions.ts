/** Reads the extensions of a certificate that Node does not tell: which are critical, and how long a chain may be. */
import type { X509Certificate } from "node:crypto"

interface CertificateExtension {
  readonly oid: string
  readonly isCritical: boolean
  readonly value: Uint8Array
}

const tag = {
  boolean: 0x01,
  integer: 0x02,
  octets: 0x04,
  oid: 0x06,
  sequence: 0x30,
  extensions: 0xa3,
} as const

const basicConstraints = "2.5.29.19"

/** Those that OpenSSL heeds; a chain with another that is critical is not valid. */
const understood = new Set([
  "2.5.29.15",
  "2.5.29.17",
  basicConstraints,
  "2.5.29.30",
  "2.5.29.31",
  "2.5.29.32",
  "2.5.29.33",
  "2.5.29.36",
  "2.5.29.37",
  "2.5.29.54",
  "1.3.6.1.5.5.7.1.7",
  "1.3.6.1.5.5.7.1.8",
])

/** Why a chain with these rules is not valid, or null. The path starts with the workload's own certificate. */
export function findChainFlaw(path: readonly X509Certificate[]): string | null {
  for (const [index, certificate] of path.entries()) {
    const extensions = readExtensions(certificate.raw)
    const unknown = extensions.find(({ oid, isCritical }) => isCritical && !understood.has(oid))
    if (unknown)
      return `a certificate of the chain has a critical extension that is not known, ${unknown.oid}`
    const most = pathLength(extensions)
    // Authorities between this one and the workload; one that issued itself anew does not count.
    const between = path.slice(1, index).filter(({ subject, issuer }) => subject !== issuer).length
    if (index > 0 && most !== null && between > most)
      return "the chain is longer than one of its authorities allows"
  }
  return null
}

/** Of a certificate that was parsed before: its structure is right. */
function readExtensions(raw: Uint8Array): CertificateExtension[] {
  const [signed] = childrenOf(raw, tag.sequence)
  const list = signed && elementsOf(signed.value).find((one) => one.tag === tag.extensions)
  return list ? childrenOf(list.value, tag.sequence).map(readExtension) : []
}

function readExtension({ value }: Element): CertificateExtension {
  const parts = elementsOf(value)
  const find = (wanted: number): Uint8Array | undefined => parts.find((part) => part.tag === wanted)?.value
  return {
    oid: oidText(find(tag.oid) ?? new Uint8Array()),
    // DER leaves out what is false.
    isCritical: find(tag.boolean)?.[0] === 0xff,
    value: find(tag.octets) ?? new Uint8Array(),
  }
}

/** Null where there is no limit. */
function pathLength(extensions: readonly CertificateExtension[]): number | null {
  const found = extensions.find(({ oid }) => oid === basicConstraints)
  const bytes = found && childrenOf(found.value, tag.sequence).find((one) => one.tag === tag.integer)?.value
  return bytes ? bytes.reduce((sum, byte) => sum * 256 + byte, 0) : null
}

interface Element {
  readonly tag: number
  readonly value: Uint8Array
}

/** What is inside the first element, which has this tag. */
function childrenOf(bytes: Uint8Array, wanted: number): Element[] {
  const [outer] = elementsOf(bytes)
  return outer?.tag === wanted ? elementsOf(outer.value) : []
}

/** DER: a byte that says what it is, one to five that say how long, and the value. */
function elementsOf(bytes: Uint8Array): Element[] {
  const elements: Element[] = []
  for (let at = 0; at + 1 < bytes.length;) {
    const first = bytes[at + 1] ?? 0
    const sizeBytes = first < 0x80 ? 0 : first & 0x7f
    const size =
      sizeBytes === 0
        ? first
        : bytes.subarray(at + 2, at + 2 + sizeBytes).reduce((sum, byte) => sum * 256 + byte, 0)
    const start = at + 2 + sizeBytes
    elements.push({ tag: bytes[at] ?? 0, value: bytes.subarray(start, start + size) })
    at = start + size
  }
  return elements
}

/** The first byte holds two numbers; every other number is in groups of seven bits. */
function oidText(bytes: Uint8Array): string {
  const numbers: number[] = []
  let number = 0
  for (const byte of bytes) {
    number = number * 128 + (byte & 0x7f)
    if (byte >= 0x80) continue
    numbers.push(number)
    number = 0
  }
  const [joined = 0, ...rest] = numbers
  const root = Math.min(2, Math.floor(joined / 40))
  return [root, joined - root * 40, ...rest].join(".")
}
