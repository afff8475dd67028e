/** The operator's commands about users. */
import { z } from "zod"
import { Fault } from "../../contract/errors.ts"
import { revokeSessionsOfUser } from "../../store/sessions.ts"
import { findUserByEmail, updateUser } from "../../store/users.ts"
import { createOneTimeLink } from "../sessions.ts"
import { type Operations, type OperatorParts, read } from "./input.ts"

const usersListedMax = 1000

const EmailInput = z.strictObject({ email: z.string() })

export function userOperations(parts: OperatorParts): Operations {
  return {
    "users.list": async () =>
      await parts.database.query(
        `SELECT u.id, u.email, u.name, u.password_hash IS NOT NULL AS has_password,
           (SELECT count(*)::int FROM memberships m WHERE m.user_id = u.id) AS organizations
         FROM users u ORDER BY u.id DESC LIMIT $1`,
        [usersListedMax],
      ),
    "users.reset": async (input) => await resetPassword(parts, read(EmailInput, input).email),
  }
}

/** The old password and every session end; the link signs in once, and the user then sets a new password. */
async function resetPassword({ database, clock, forget }: OperatorParts, email: string): Promise<unknown> {
  const now = new Date(clock.nowMs())
  const { ended, ...reset } = await database.transaction(async (sql) => {
    const user = await findUserByEmail(sql, email)
    if (!user) throw new Fault("not_found", `Cannot find a user with the address ${email}`)
    await updateUser(sql, user.id, { passwordHash: null }, now)
    const sessions = await revokeSessionsOfUser(sql, user.id, now)
    const { link, expiresAt } = await createOneTimeLink(sql, user.id, now)
    return { ended: sessions, id: user.id, email: user.email, link, expires_at: expiresAt.toISOString() }
  })
  for (const { id } of ended) forget({ table: "sessions", id })
  return { ...reset, sessions_ended: ended.length }
}
