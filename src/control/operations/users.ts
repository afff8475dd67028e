/** The operator's commands about users. */
import { z } from "zod"
import { Fault } from "../../contract/errors.ts"
import { revokeSessionsOfUser } from "../../store/sessions.ts"
import { type User, findFirstUser, findUserByEmail, updateUser } from "../../store/users.ts"
import { type ChangeScope, change, systemCaller } from "../change.ts"
import { createOneTimeLink, tellOrganizations } from "../sessions.ts"
import { type Operations, type OperatorParts, read, signInAddress } from "./input.ts"

const usersListedMax = 1000

const EmailInput = z.strictObject({ email: z.string() })
const LinkInput = z.strictObject({ email: z.string().optional() })

export function userOperations(parts: OperatorParts): Operations {
  return {
    "users.list": async () =>
      await parts.database.query(
        `SELECT u.id, u.email, u.name, u.password_hash IS NOT NULL AS has_password,
           (SELECT count(*)::int FROM memberships m WHERE m.user_id = u.id) AS organizations
         FROM users u ORDER BY u.id DESC LIMIT $1`,
        [usersListedMax],
      ),
    "users.link": async (input) => await makeLink(parts, read(LinkInput, input).email),
    "users.reset": async (input) => await resetPassword(parts, read(EmailInput, input).email),
  }
}

/** Without an address, for the first user. The password and the sessions stay as they are. */
async function makeLink(parts: OperatorParts, email: string | undefined): Promise<unknown> {
  return await change(parts, systemCaller, async (scope) => {
    const { sql } = scope
    const user = await (email === undefined ? findFirstUser(sql) : findUserByEmail(sql, email))
    if (!user)
      throw new Fault("not_found", `Cannot find ${email ? `a user with the address ${email}` : "a user"}`)
    const link = await linkFor(parts, scope, user)
    await tellOrganizations(scope, user.id, "user.create_link", { type: "user", id: user.id })
    return link
  })
}

/** The old password and every session end; the link signs in once, and the user then sets a new password. */
async function resetPassword(parts: OperatorParts, email: string): Promise<unknown> {
  return await change(parts, systemCaller, async (scope) => {
    const { sql, now, touched } = scope
    const user = await findUserByEmail(sql, email)
    if (!user) throw new Fault("not_found", `Cannot find a user with the address ${email}`)
    await updateUser(sql, user.id, { passwordHash: null }, now)
    const ended = await revokeSessionsOfUser(sql, user.id, now)
    for (const { id } of ended) touched({ table: "sessions", id })
    const link = await linkFor(parts, scope, user)
    await tellOrganizations(scope, user.id, "user.reset_password", { type: "user", id: user.id })
    return { ...link, sessions_ended: ended.length }
  })
}

async function linkFor(
  parts: OperatorParts,
  { sql, now }: ChangeScope,
  { id, email }: User,
): Promise<object> {
  const { link, expiresAt } = await createOneTimeLink(sql, id, now)
  return { id, email, link, url: signInAddress(parts, link), expires_at: expiresAt.toISOString() }
}
