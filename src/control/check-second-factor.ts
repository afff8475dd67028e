/** Checks a code of two-factor sign-in: one of the app, each taken once, or a recovery code. */
import { Fault } from "../contract/errors.ts"
import { type ContentCipher, openText } from "../store/content/cipher.ts"
import { type SecondFactor, findSecondFactor, takeStep, useRecoveryCode } from "../store/second-factors.ts"
import type { Sql } from "../store/sql.ts"
import type { User } from "../store/users.ts"
import type { ControlDeps } from "./audited-change.ts"
import { hashSecret } from "./principals.ts"
import { matchingStep } from "./totp.ts"

interface FactorDeps extends Pick<ControlDeps, "database" | "clock"> {
  readonly content: { readonly cipher: ContentCipher }
  readonly limits: {
    countCode(userId: string): Promise<void>
    codeMatched(userId: string): void
  }
}

/** After the password or the link was right; where two-factor sign-in is on. A code is taken once. */
export async function checkSecondFactor(
  deps: FactorDeps,
  user: User,
  code: string | undefined,
): Promise<void> {
  const factor = await findSecondFactor(deps.database, user.id)
  if (!factor?.confirmedAt) return
  if (code === undefined)
    throw new Fault(
      "second_factor_required",
      "Cannot sign in: the code of your authenticator app is needed too",
    )
  await deps.limits.countCode(user.id)
  if (!(await takeFactor(deps, deps.database, { factor, code })))
    throw new Fault("invalid_credentials", "Cannot sign in: the code is not right, or was used already")
  deps.limits.codeMatched(user.id)
}

interface Given {
  readonly factor: SecondFactor
  readonly code: string
}

/** A code of the app, or a recovery code. */
export async function takeFactor(deps: FactorDeps, sql: Sql, given: Given): Promise<boolean> {
  if (/^\d{6}$/.test(given.code)) return await takeCode(deps, sql, given)
  const hash = hashSecret(plainCode(given.code))
  return await useRecoveryCode(sql, given.factor.userId, { hash, at: new Date(deps.clock.nowMs()) })
}

export async function takeCode(
  { content, clock }: Pick<FactorDeps, "content" | "clock">,
  sql: Sql,
  { factor, code }: Given,
): Promise<boolean> {
  const secret = openText(content.cipher, placeOf({ id: factor.userId }), factor.secret)
  if (secret === null)
    throw new Fault(
      "conflict",
      "Cannot check the code: its secret was encrypted with a key that the installation no longer has; use a recovery code",
    )
  const step = matchingStep(Buffer.from(secret, "base64url"), code, clock.nowMs())
  return step !== null && (await takeStep(sql, factor.userId, step))
}

export const placeOf = ({ id }: Pick<User, "id">) => ({ organizationId: id, seqId: "second factor" })

/** However it was typed. */
const plainCode = (code: string): string => code.replaceAll(/[^a-z2-7]/gi, "").toLowerCase()
