/** Checks a client certificate against one provider: a chain to an anchor of this provider, and nothing weak in it. */
import type { X509Certificate } from "node:crypto"
import type { X509Config } from "../../store/identity-providers.ts"
import {
  claimsOf,
  findUntimely,
  findWeakness,
  isForClients,
  readCertificates,
  sameCertificate,
} from "./certificates.ts"
import { type Assertion, Refusal } from "./refusal.ts"

/** A chain from the workload to its anchor, both included. */
const chainMax = 8
/** Signatures to check while looking for a chain; names that repeat make many ways to try. */
const attemptsMax = 64

/** What a TLS handshake says of the client's certificate. */
export interface Handshake {
  /** Whether OpenSSL validated a chain. */
  readonly authorized: boolean
  /** `id:revision` of the provider whose certificates alone it trusted in that; null when that is not known. */
  readonly trusted: string | null
  /** OpenSSL's name for why not. */
  readonly failure: string | null
  /** The client's own certificate first. */
  readonly chain: readonly X509Certificate[]
}

/**
 * What is seen of the chain is checked once more and pinned to an anchor of the provider. Some versions of Node show no
 * more than the client's own certificate when the chain is valid: then OpenSSL's word is taken for the rest, if the
 * context it validated in is known to have held the certificates of this provider, as they are now, and no others.
 */
export function verifyHandshake(
  handshake: Handshake,
  config: X509Config,
  { cacheKey, nowMs }: { cacheKey: string; nowMs: number },
): Assertion {
  const { authorized, chain } = handshake
  const [leaf, ...issuers] = chain
  const hidden = authorized && handshake.trusted === cacheKey && issuers.length === 0
  const assertion =
    leaf && hidden
      ? assertionOf(findPath(checkLeaf(leaf, nowMs), ...trusted(config)) ?? [leaf], nowMs)
      : verifyChain(chain, config, nowMs)
  if (!authorized)
    throw new Refusal(openSslReasons[handshake.failure ?? ""] ?? "the certificate chain is not valid")
  return assertion
}

const openSslReasons: Readonly<Record<string, string>> = {
  CERT_HAS_EXPIRED: "a certificate of the chain has expired",
  CERT_NOT_YET_VALID: "a certificate of the chain is not valid yet",
  INVALID_CA: "an issuer in the chain is not a certificate authority",
  INVALID_PURPOSE: "the certificate is not for TLS clients",
  PATH_LENGTH_EXCEEDED: "the chain is longer than one of its authorities allows",
}

/** The same without a handshake, for a dry run: the caller need not hold the private key. */
export function rehearseChain(
  chain: readonly X509Certificate[],
  config: X509Config,
  nowMs: number,
): Assertion {
  const assertion = verifyChain(chain, config, nowMs)
  const [leaf, ...presented] = chain
  const [intermediates, anchors] = trusted(config)
  const path = (leaf && findPath(leaf, [...presented, ...intermediates], anchors)) ?? []
  const flaw = findChainFlaw(path)
  if (flaw !== null) throw new Refusal(flaw)
  return assertion
}

function verifyChain(chain: readonly X509Certificate[], config: X509Config, nowMs: number): Assertion {
  const [leaf, ...presented] = chain
  if (!leaf) throw new Refusal("no client certificate was presented")
  checkLeaf(leaf, nowMs)
  const [intermediates, anchors] = trusted(config)
  const path = findPath(leaf, [...presented, ...intermediates], anchors)
  if (!path) throw new Refusal("the certificate does not lead to a trust anchor of this provider")
  return assertionOf(path, nowMs)
}

function trusted(config: X509Config): [intermediates: X509Certificate[], anchors: X509Certificate[]] {
  return [config.intermediate_cas.flatMap(readCertificates), config.trust_anchors.flatMap(readCertificates)]
}

function checkLeaf(leaf: X509Certificate, nowMs: number): X509Certificate {
  refuseUnfit(leaf, "the certificate", nowMs)
  if (!isForClients(leaf)) throw new Refusal("the certificate is not for TLS clients (extended key usage)")
  return leaf
}

/** The path starts with the workload's own certificate. */
function assertionOf(path: readonly X509Certificate[], nowMs: number): Assertion {
  const [leaf, ...authorities] = path
  for (const authority of authorities) refuseUnfitAuthority(authority, nowMs)
  const claims = leaf ? claimsOf(leaf) : null
  if (!claims) throw new Refusal("the certificate's alternative names cannot be read")
  return {
    claims,
    expiresMs: Math.min(...path.map(({ validToDate }) => validToDate.getTime())),
    subject: claims.spiffe_id || claims.subject_dn || null,
  }
}

function refuseUnfitAuthority(authority: X509Certificate, nowMs: number): void {
  refuseUnfit(authority, "an issuer in the chain", nowMs)
  if (!authority.ca) throw new Refusal("an issuer in the chain is not a certificate authority")
}

function refuseUnfit(certificate: X509Certificate, what: string, nowMs: number): void {
  const reason = findUntimely(certificate, nowMs) ?? findWeakness(certificate)
  if (reason !== null) throw new Refusal(`${what} ${reason}`)
}

/** The first way from the leaf to an anchor in which every signature is right; names alone prove nothing. */
function findPath(
  leaf: X509Certificate,
  intermediates: readonly X509Certificate[],
  anchors: readonly X509Certificate[],
): X509Certificate[] | null {
  let attempts = 0
  const issued = (certificate: X509Certificate, issuer: X509Certificate): boolean => {
    if (!certificate.checkIssued(issuer) || ++attempts > attemptsMax) return false
    return certificate.verify(issuer.publicKey)
  }
  const extend = (path: X509Certificate[]): X509Certificate[] | null => {
    const last = path.at(-1)
    if (!last || path.length >= chainMax) return null
    const anchor = anchors.find((one) => !sameCertificate(one, leaf) && issued(last, one))
    if (anchor) return [...path, anchor]
    for (const issuer of intermediates) {
      if (path.some((one) => sameCertificate(one, issuer)) || !issued(last, issuer)) continue
      const found = extend([...path, issuer])
      if (found) return found
    }
    return null
  }
  return extend([leaf])
}

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
function findChainFlaw(path: readonly X509Certificate[]): string | null {
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
