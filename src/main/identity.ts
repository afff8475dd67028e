/** Joins workload identity to the rest: its settings from the configuration, and the mTLS port where one is configured. */
import { readFile } from "node:fs/promises"
import { ConfigError } from "../base/config.ts"
import type { Config } from "../base/config-schema.ts"
import type { Ids } from "../base/ids.ts"
import type { Log } from "../base/log.ts"
import type { ControlDeps } from "../control/audited-change.ts"
import { type Identity, openIdentity } from "../control/identity/identity.ts"
import { type MtlsPort, openMtls } from "../server/mtls.ts"

interface IdentitySurroundings {
  readonly control: ControlDeps
  readonly log: Log
}

export async function openConfiguredIdentity(
  config: Config,
  { control, log }: IdentitySurroundings,
): Promise<Identity> {
  const { token_lifetime_minutes, allow_private, ca_file } = config.identity
  return await openIdentity({
    ...control,
    log,
    issuer: config.server.public_url ?? "umpire",
    lifetimeMinutes: token_lifetime_minutes,
    allowPrivate: allow_private,
    ca: ca_file === undefined ? undefined : await readPem("identity.ca_file", ca_file),
  })
}

/** Null when no port is configured. */
export async function openConfiguredMtls(
  config: Config,
  identity: Identity,
  { ids, log }: { ids: Ids; log: Log },
): Promise<MtlsPort | null> {
  const { mtls_port, mtls_host, mtls_cert_file, mtls_key_file } = config.identity
  if (mtls_port === undefined) return null
  if (mtls_cert_file === undefined || mtls_key_file === undefined)
    throw new ConfigError("Cannot open identity.mtls_port: it needs mtls_cert_file and mtls_key_file")
  const port = await openMtls({
    certificate: await readPem("identity.mtls_cert_file", mtls_cert_file),
    privateKey: await readPem("identity.mtls_key_file", mtls_key_file),
    trust: async (providerId) => await identity.trust(providerId),
    exchange: async (body, request, presented) =>
      await identity.exchangeCertificate(body, request, presented),
    ids,
    log,
  })
  const listening = await port.listen(mtls_host, mtls_port)
  log.info({ host: mtls_host, port: listening }, "client certificates are exchanged on the mTLS port")
  return port
}

async function readPem(key: string, file: string): Promise<string> {
  try {
    return await readFile(file, "utf8")
  } catch (cause) {
    throw new ConfigError(`Cannot use ${key}: the file does not exist or is not readable`, { cause })
  }
}
