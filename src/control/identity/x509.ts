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
import { findChainFlaw } from "./certificate-extensions.ts"
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
  cacheKey: string,
  nowMs: number,
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
