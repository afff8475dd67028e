/** Passkeys of the signed-in user: added, listed and removed. */
import { newSecret } from "../base/ids.ts"
import type { Handle, Handlers } from "../contract/endpoint.ts"
import { Fault } from "../contract/errors.ts"
import { passkeysMax } from "../contract/platform/passkeys.ts"
import type { PlatformTable } from "../contract/table.ts"
import {
  type Passkey,
  countPasskeys,
  deletePasskey,
  insertChallenge,
  insertPasskey,
  listPasskeys,
} from "../store/passkeys.ts"
import { lockUser } from "../store/users.ts"
import { change, notFound } from "./audited-change.ts"
import { answersChallenge, decode, partyOf } from "./check-passkey.ts"
import { hashSecret } from "./principals.ts"
import { type SessionDeps, checkCurrentPassword, current, tellOrganizations } from "./sessions.ts"
import { toWire } from "./to-wire.ts"
import { readAuthenticatorData, readPublicKey } from "./webauthn.ts"

type Names = "listPasskeys" | "beginPasskey" | "addPasskey" | "removePasskey" | "createPasskeyChallenge"

const challengeMs = 5 * 60_000

export function passkeyHandlers(deps: SessionDeps): Pick<Handlers<PlatformTable>, Names> {
  const { database } = deps
  return {
    async createPasskeyChallenge({ request }) {
      const { id } = partyOf(deps)
      await deps.limits.countAttempt(request.ip)
      return { challenge: await giveChallenge(deps, null), rp_id: id }
    },
    async listPasskeys({ principal }) {
      const { user } = await current(deps, principal)
      return (await listPasskeys(database, user.id)).map(viewPasskey)
    },
    async beginPasskey(call) {
      const { session, user } = await current(deps, call.principal)
      const { id } = partyOf(deps)
      await checkCurrentPassword(deps, user, {
        sessionId: session.id,
        given: call.body.current_password,
        ip: call.request.ip,
      })
      return {
        challenge: await giveChallenge(deps, user.id),
        rp_id: id,
        user_handle: Buffer.from(user.id).toString("base64url"),
        user_name: user.email,
        known_credentials: (await listPasskeys(database, user.id)).map(({ credentialId }) => credentialId),
      }
    },
    addPasskey: async (call) => await add(deps, call),
    async removePasskey(call) {
      const { user } = await current(deps, call.principal)
      await change(deps, call, async (scope) => {
        if (!(await deletePasskey(scope.sql, user.id, call.params.passkey_id))) throw notFound("passkey")
        await tellOrganizations(scope, user.id, { action: "user.remove_passkey" })
      })
    },
  }
}

async function giveChallenge({ database, clock }: SessionDeps, userId: string | null): Promise<string> {
  const challenge = newSecret()
  const expiresAt = new Date(clock.nowMs() + challengeMs)
  await insertChallenge(database, { challengeHash: hashSecret(challenge), userId, expiresAt })
  return Buffer.from(challenge).toString("base64url")
}

const add: Handle<SessionDeps, PlatformTable["addPasskey"]> = async (deps, call) => {
  const { user } = await current(deps, call.principal)
  const party = partyOf(deps)
  const { name, client_data, authenticator_data, public_key } = call.body
  const clientData = decode(client_data)
  const made = readAuthenticatorData(decode(authenticator_data), party)
  const publicKey = decode(public_key)
  const id = deps.ids.next("pk")
  return await change(deps, call, async (scope) => {
    const { sql, now } = scope
    await lockUser(sql, user.id)
    const isAnswer = await answersChallenge(
      sql,
      { clientData, kind: "create", userId: user.id },
      { party, now },
    )
    if (!isAnswer || !made || made.credentialId === null || !readPublicKey(publicKey))
      throw new Fault("permission_denied", "Cannot add the passkey: it was not made here for you just now")
    if ((await countPasskeys(sql, user.id)) >= passkeysMax)
      throw new Fault("conflict", `Cannot add the passkey: there are ${passkeysMax} already; remove one`)
    const { credentialId, signCount } = made
    const row = { id, userId: user.id, credentialId, publicKey, signCount, name, createdAt: now }
    if (!(await insertPasskey(sql, row)))
      throw new Fault("conflict", "Cannot add the passkey: it is there already")
    await tellOrganizations(scope, user.id, { action: "user.add_passkey" })
    return viewPasskey({ ...row, lastUsedAt: null })
  })
}

const viewPasskey = (passkey: Passkey) => toWire(passkey, "id", "name", "createdAt", "lastUsedAt")
