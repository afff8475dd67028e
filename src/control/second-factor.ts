/** Two-factor sign-in: time-based codes are set up, asked for beside the password, and replaced by recovery codes. */
import { randomBytes } from "node:crypto"
import type { Handle, Handlers } from "../contract/endpoint.ts"
import { Fault } from "../contract/errors.ts"
import type { PlatformTable } from "../contract/table.ts"
import { recoveryCodesCount } from "../contract/platform/second-factor.ts"
import { sealText } from "../store/content/cipher.ts"
import {
  beginSecondFactor,
  confirmSecondFactor,
  countRecoveryCodes,
  deleteSecondFactor,
  findSecondFactor,
  replaceRecoveryCodes,
} from "../store/second-factors.ts"
import type { Sql } from "../store/sql.ts"
import type { User } from "../store/users.ts"
import { change } from "./audited-change.ts"
import { placeOf, takeCode, takeFactor } from "./check-second-factor.ts"
import { hashSecret } from "./principals.ts"
import {
  type SessionDeps,
  checkCurrentPassword,
  current,
  endOtherSessions,
  tellOrganizations,
} from "./sessions.ts"
import { base32, otpauthUri } from "./totp.ts"

type Names =
  | "getSecondFactor"
  | "beginSecondFactor"
  | "confirmSecondFactor"
  | "replaceRecoveryCodes"
  | "removeSecondFactor"

/** As long as the hash, as RFC 4226 recommends. */
const secretBytes = 20
const issuer = "Umpire"

export function secondFactorHandlers(deps: SessionDeps): Pick<Handlers<PlatformTable>, Names> {
  const { database } = deps
  return {
    async getSecondFactor({ principal }) {
      const { user } = await current(deps, principal)
      const factor = await findSecondFactor(database, user.id)
      return {
        enabled: factor?.confirmedAt instanceof Date,
        recovery_codes_left: await countRecoveryCodes(database, user.id),
      }
    },
    beginSecondFactor: async (call) => await begin(deps, call),
    confirmSecondFactor: async (call) => await confirm(deps, call),
    async replaceRecoveryCodes(call) {
      const { user } = await current(deps, call.principal)
      return await change(deps, call, async (scope) => {
        await requireCode(deps, scope.sql, { user, code: call.body.code })
        await tellOrganizations(scope, user.id, { action: "user.replace_recovery_codes" })
        return { recovery_codes: await giveRecoveryCodes(scope.sql, user) }
      })
    },
    async removeSecondFactor(call) {
      const { user } = await current(deps, call.principal)
      await change(deps, call, async (scope) => {
        await requireCode(deps, scope.sql, { user, code: call.body.code })
        await deleteSecondFactor(scope.sql, user.id)
        await tellOrganizations(scope, user.id, { action: "user.disable_second_factor" })
      })
    },
  }
}

const begin: Handle<SessionDeps, PlatformTable["beginSecondFactor"]> = async (deps, call) => {
  const { session, user } = await current(deps, call.principal)
  const { cipher } = deps.content
  if (!cipher.isAvailable)
    throw new Fault(
      "conflict",
      "Cannot set up two-factor sign-in: the installation has no key to encrypt with",
    )
  await checkCurrentPassword(deps, user, {
    sessionId: session.id,
    given: call.body.current_password,
    ip: call.request.ip,
  })
  const secret = randomBytes(secretBytes)
  return await change(deps, call, async ({ sql, now }) => {
    const sealed = sealText(cipher, placeOf(user), secret.toString("base64url"))
    if (!(await beginSecondFactor(sql, { userId: user.id, secret: sealed, createdAt: now })))
      throw new Fault("conflict", "Cannot set up two-factor sign-in: it is on already; switch it off first")
    return { secret: base32(secret), uri: otpauthUri(secret, { issuer, account: user.email }) }
  })
}

/** From now on signing in asks for a code; sessions that began without one end. */
const confirm: Handle<SessionDeps, PlatformTable["confirmSecondFactor"]> = async (deps, call) => {
  const { session, user } = await current(deps, call.principal)
  await deps.limits.countCode(user.id)
  return await change(deps, call, async (scope) => {
    const { sql, now, invalidate } = scope
    const factor = await findSecondFactor(sql, user.id)
    if (!factor || factor.confirmedAt)
      throw new Fault("conflict", "Cannot confirm two-factor sign-in: it is not being set up")
    if (!(await takeCode(deps, sql, { factor, code: call.body.code })))
      throw new Fault("permission_denied", "Cannot confirm two-factor sign-in: the code is not right")
    deps.limits.codeMatched(user.id)
    await confirmSecondFactor(sql, user.id, now)
    for (const id of await endOtherSessions(sql, user.id, { keptId: session.id, now }))
      invalidate({ table: "sessions", id })
    await tellOrganizations(scope, user.id, { action: "user.enable_second_factor" })
    return { recovery_codes: await giveRecoveryCodes(sql, user) }
  })
}

/** Of who is signed in and changes how they sign in. */
async function requireCode(
  deps: SessionDeps,
  sql: Sql,
  { user, code }: { user: User; code: string },
): Promise<void> {
  await deps.limits.countCode(user.id)
  const factor = await findSecondFactor(sql, user.id)
  if (!factor?.confirmedAt) throw new Fault("conflict", "Cannot use the code: two-factor sign-in is off")
  if (!(await takeFactor(deps, sql, { factor, code })))
    throw new Fault("permission_denied", "Cannot change two-factor sign-in: the code is not right")
  deps.limits.codeMatched(user.id)
}

/** 80 bits: what is stored is a hash that cannot be guessed through. */
const recoveryBytes = 10

async function giveRecoveryCodes(sql: Sql, { id }: User): Promise<string[]> {
  const codes = Array.from({ length: recoveryCodesCount }, () =>
    base32(randomBytes(recoveryBytes)).toLowerCase(),
  )
  await replaceRecoveryCodes(sql, id, codes.map(hashSecret))
  return codes.map((code) => code.replaceAll(/.{4}(?!$)/g, "$&-"))
}
