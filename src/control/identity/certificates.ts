/** Reads certificates, says what makes one unfit for trust, and turns a client's into claims. */
import { X509Certificate } from "node:crypto"

const rsaBitsMin = 2048
const clientAuth = "1.3.6.1.5.5.7.3.2"
const pemForm = /-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----/g

/** Signatures over SHA-2 or better; whatever is not here (SHA-1, MD5, DSA) does not count. */
const signatureAlgorithms = new Set([
  "1.2.840.113549.1.1.10",
  "1.2.840.113549.1.1.11",
  "1.2.840.113549.1.1.12",
  "1.2.840.113549.1.1.13",
  "1.2.840.10045.4.3.2",
  "1.2.840.10045.4.3.3",
  "1.2.840.10045.4.3.4",
  "1.3.101.112",
  "1.3.101.113",
])

/** The certificates of a PEM text, in order. Throws when one of them cannot be read. */
export function readCertificates(pem: string): X509Certificate[] {
  return [...pem.matchAll(pemForm)].map(([text]) => new X509Certificate(text))
}

export function isSelfSigned(certificate: X509Certificate): boolean {
  return certificate.checkIssued(certificate) && certificate.verify(certificate.publicKey)
}

export const sameCertificate = (a: X509Certificate, b: X509Certificate): boolean => a.raw.equals(b.raw)

/** Why nothing that this certificate takes part in can be trusted, or null. */
export function findWeakness(certificate: X509Certificate): string | null {
  const { publicKey, signatureAlgorithmOid } = certificate
  if (signatureAlgorithmOid === undefined || !signatureAlgorithms.has(signatureAlgorithmOid))
    return "is signed with an algorithm that is not accepted, such as SHA-1"
  switch (publicKey.asymmetricKeyType) {
    case "rsa":
    case "rsa-pss":
      return (publicKey.asymmetricKeyDetails?.modulusLength ?? 0) < rsaBitsMin
        ? `has an RSA key of less than ${rsaBitsMin} bits`
        : null
    case "ec":
    case "ed25519":
    case "ed448":
      return null
    default:
      return "has a key of a kind that is not accepted"
  }
}

/** Why the certificate cannot be used at this moment, or null. */
export function findUntimely(certificate: X509Certificate, nowMs: number): string | null {
  if (nowMs < certificate.validFromDate.getTime()) return "is not valid yet"
  return nowMs > certificate.validToDate.getTime() ? "has expired" : null
}

/** `keyUsage` of Node is the extended key usage. Absent means "anything", which is more than was granted on purpose. */
export const isForClients = (certificate: X509Certificate): boolean =>
  certificate.keyUsage?.includes(clientAuth) ?? false

interface CertificateClaims {
  readonly [claim: string]: unknown
  readonly subject: Readonly<Record<string, unknown>>
  readonly subject_dn: string
  readonly issuer: Readonly<Record<string, unknown>>
  readonly issuer_dn: string
  readonly sans: AlternativeNames
  readonly spiffe_id: string
  readonly serial: string
  readonly fingerprint: string
  readonly not_before: string
  readonly not_after: string
}

interface AlternativeNames {
  readonly dns: readonly string[]
  readonly uri: readonly string[]
  readonly email: readonly string[]
  readonly ip: readonly string[]
}

/** What CEL sees as `assertion` of a client certificate. Null when its names cannot be read without doubt. */
export function claimsOf(certificate: X509Certificate): CertificateClaims | null {
  const sans = readAlternativeNames(certificate.subjectAltName ?? "")
  if (!sans) return null
  const { subject, issuer } = certificate.toLegacyObject()
  const spiffe = sans.uri.filter((uri) => uri.startsWith("spiffe://"))
  return {
    subject: { ...subject },
    subject_dn: distinguishedName(certificate.subject),
    issuer: { ...issuer },
    issuer_dn: distinguishedName(certificate.issuer),
    sans,
    // An X.509-SVID holds exactly one URI; several would be several identities.
    spiffe_id: spiffe.length === 1 && sans.uri.length === 1 ? (spiffe[0] ?? "") : "",
    serial: certificate.serialNumber.toLowerCase(),
    fingerprint: certificate.fingerprint256.replaceAll(":", "").toLowerCase(),
    not_before: certificate.validFromDate.toISOString(),
    not_after: certificate.validToDate.toISOString(),
  }
}

/** An empty name is absent in Node. */
const distinguishedName = (lines: string | undefined): string => (lines ?? "").replaceAll("\n", ", ")

const nameKinds: Readonly<Record<string, keyof AlternativeNames>> = {
  DNS: "dns",
  URI: "uri",
  email: "email",
  "IP Address": "ip",
}

/** Node writes `DNS:a, URI:"b, c"`: a value with anything special in it is a JSON string. */
export function readAlternativeNames(text: string): AlternativeNames | null {
  const names: Record<"dns" | "uri" | "email" | "ip", string[]> = { dns: [], uri: [], email: [], ip: [] }
  const entry = /([A-Za-z ]+):("(?:[^"\\]|\\.)*"|[^",]*)(?:, |$)/y
  while (entry.lastIndex < text.length) {
    const [, kind, value] = entry.exec(text) ?? []
    if (kind === undefined || value === undefined) return null
    const list = nameKinds[kind]
    // Other kinds of names exist; policies do not see them.
    if (list) names[list].push(value.startsWith('"') ? JSON.parse(value) : value)
  }
  return names
}
