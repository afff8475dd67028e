/** Signing in with a passkey: whose it is, and whether the device has answered a challenge of ours with it just now. */
import { isIP } from "node:net"
import { Fault } from "../contract/errors.ts"
import type { Assertion } from "../contract/platform/passkeys.ts"
import { findPasskey, takeChallenge, usePasskey } from "../store/passkeys.ts"
import type { Sql } from "../store/sql.ts"
import { type User, findUser } from "../store/users.ts"
import type { ControlDeps } from "./audited-change.ts"
import { hashSecret } from "./principals.ts"
import { type RelyingParty, challengeOf, isSigned, readAuthenticatorData, readPublicKey } from "./webauthn.ts"

interface PasskeyDeps extends Pick<ControlDeps, "database" | "clock"> {
  readonly limits: { countAttempt(ip: string): Promise<void> }
  publicUrl(): string
}

/** The device has asked who holds it, so no code is needed beside it. */
export async function userOfPasskey(
  deps: PasskeyDeps,
  { credential_id, client_data, authenticator_data, signature }: Assertion,
  ip: string,
): Promise<User> {
  const { database, clock } = deps
  const party = partyOf(deps)
  await deps.limits.countAttempt(ip)
  const now = new Date(clock.nowMs())
  const clientData = decode(client_data)
  const authenticatorData = decode(authenticator_data)
  const read = readAuthenticatorData(authenticatorData, party)
  const passkey = await findPasskey(database, credential_id)
  const key = passkey && readPublicKey(passkey.publicKey)
  const isAnswer = await answersChallenge(database, { clientData, kind: "get", userId: null }, { party, now })
  const isTheirs = key && isSigned(key, { authenticatorData, clientData }, decode(signature))
  const user = passkey && (await findUser(database, passkey.userId))
  if (
    !read ||
    !user ||
    !isAnswer ||
    !isTheirs ||
    !(await usePasskey(database, passkey.id, { signCount: read.signCount, at: now }))
  )
    throw new Fault(
      "invalid_credentials",
      "Cannot sign in: the passkey is unknown, or was not asked for just now",
    )
  return user
}

/** Whether the client data answers a challenge of this user, which then is used up. */
export async function answersChallenge(
  sql: Sql,
  { clientData, kind, userId }: { clientData: Buffer; kind: "create" | "get"; userId: string | null },
  { party, now }: { party: RelyingParty; now: Date },
): Promise<boolean> {
  const challenge = challengeOf(clientData, kind, party)
  if (challenge === null) return false
  return await takeChallenge(sql, {
    hash: hashSecret(Buffer.from(challenge).toString("utf8")),
    userId,
    now,
  })
}

/** Browsers take no address for the host of a passkey; on the machine itself `localhost` is its name. */
export function partyOrNull({ publicUrl }: Pick<PasskeyDeps, "publicUrl">): RelyingParty | null {
  const url = new URL(publicUrl())
  const host = url.hostname.replaceAll(/[[\]]/g, "")
  if (isIP(host) === 0) return { id: host, origin: url.origin }
  if (!/^(?:127\.|::1$)/.test(host)) return null
  url.hostname = "localhost"
  return { id: "localhost", origin: url.origin }
}

export function partyOf(deps: PasskeyDeps): RelyingParty {
  const party = partyOrNull(deps)
  if (party) return party
  throw new Fault(
    "conflict",
    "Cannot use passkeys: they need a host name, and server.public_url has an address",
  )
}

export const decode = (text: string): Buffer => Buffer.from(text, "base64url")
