/** Certificates made with the real openssl, for tests: authorities, chains, and the many ways in which one can be wrong. */
import { execFileSync } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

export interface Issued {
  /** PEM. */
  readonly certificate: string
  readonly key: string
  readonly keyFile: string
  readonly certificateFile: string
}

export interface CertificateOptions {
  /** `/CN=name` and the like. */
  readonly subject: string
  /** Signs itself when left out. */
  readonly issuer?: Issued
  /** Lines of an openssl extension section. */
  readonly extensions: readonly string[]
  /** Days from now, may be negative. */
  readonly fromDays?: number
  readonly toDays?: number
  readonly digest?: string
  /** Arguments of `openssl genpkey`. */
  readonly newKey?: readonly string[]
  /** Reuses the key of another. */
  readonly keyOf?: Issued
}

export const caExtensions = ["basicConstraints=critical,CA:TRUE", "keyUsage=critical,keyCertSign,cRLSign"]
export const clientExtensions = [
  "basicConstraints=critical,CA:FALSE",
  "keyUsage=critical,digitalSignature",
  "extendedKeyUsage=clientAuth",
]
export const serverExtensions = (...names: string[]): string[] => [
  "basicConstraints=critical,CA:FALSE",
  "extendedKeyUsage=serverAuth",
  `subjectAltName=${names.join(",")}`,
]

const ecKey = ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"]
const dayMs = 86_400_000

export class OpenSsl {
  readonly #folder = mkdtempSync(join(tmpdir(), "umpire-openssl-"))
  #count = 0

  constructor() {
    ensureOpenSsl()
  }

  issue(options: CertificateOptions): Issued {
    const name = join(this.#folder, String(++this.#count))
    const keyFile = options.keyOf?.keyFile ?? `${name}.key`
    if (!options.keyOf) run(["genpkey", ...(options.newKey ?? ecKey), "-out", keyFile])
    run(["req", "-new", "-key", keyFile, "-subj", options.subject, "-out", `${name}.csr`])
    const certificateFile = `${name}.pem`
    this.#sign(options, name, keyFile, certificateFile)
    return {
      certificate: readFileSync(certificateFile, "utf8"),
      key: readFileSync(keyFile, "utf8"),
      keyFile,
      certificateFile,
    }
  }

  /** `openssl ca` is the one command that takes both ends of the validity. */
  #sign(options: CertificateOptions, name: string, keyFile: string, certificateFile: string): void {
    const { issuer, fromDays = -1, toDays = 30, digest = "sha256" } = options
    writeFileSync(`${name}.index`, "")
    writeFileSync(`${name}.serial`, `10${String(this.#count).padStart(4, "0")}`)
    writeFileSync(
      `${name}.cnf`,
      [
        "[ca]",
        "default_ca=this",
        "[this]",
        `database=${name}.index`,
        `serial=${name}.serial`,
        `new_certs_dir=${this.#folder}`,
        "policy=any",
        "unique_subject=no",
        "rand_serial=no",
        "[any]",
        ...["C", "O", "OU", "CN", "emailAddress"].map((part) => `${part}=optional`),
        "[extensions]",
        "subjectKeyIdentifier=hash",
        ...options.extensions,
      ].join("\n"),
    )
    run([
      "ca",
      "-batch",
      "-notext",
      "-config",
      `${name}.cnf`,
      "-extensions",
      "extensions",
      "-md",
      digest,
      "-startdate",
      stamp(fromDays),
      "-enddate",
      stamp(toDays),
      "-in",
      `${name}.csr`,
      "-out",
      certificateFile,
      ...(issuer
        ? ["-cert", issuer.certificateFile, "-keyfile", issuer.keyFile]
        : ["-selfsign", "-keyfile", keyFile]),
    ])
  }

  close(): void {
    rmSync(this.#folder, { recursive: true, force: true })
  }
}

function stamp(days: number): string {
  const time = new Date(Date.now() + days * dayMs).toISOString()
  return `${time.replaceAll(/[-:T]/g, "").slice(0, 14)}Z`
}

function run(args: readonly string[]): void {
  execFileSync("openssl", args, { stdio: ["ignore", "ignore", "pipe"] })
}

/** A bare machine may lack it; where a package manager is at hand it is fetched. */
function ensureOpenSsl(): void {
  try {
    run(["version"])
  } catch {
    execFileSync("apt-get", ["install", "-y", "--no-install-recommends", "openssl"], { stdio: "ignore" })
    run(["version"])
  }
}
