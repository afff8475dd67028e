/** The operator's endpoints about users. */
import type { CallOf, Handlers, OutputOf } from "../../contract/endpoint.ts"
import { Fault } from "../../contract/errors.ts"
import type { OperatorTable } from "../../contract/operator.ts"
import { boolean, integer, row, text } from "../../store/rows.ts"
import { revokeSessionsOfUser } from "../../store/sessions.ts"
import { type User, findFirstUser, findUserByEmail, updateUser } from "../../store/users.ts"
import { type ChangeScope, change } from "../audited-change.ts"
import { createOneTimeLink, tellOrganizations } from "../sessions.ts"
import { type OperatorDeps, signInAddress } from "./deps.ts"

const usersListedMax = 1000
const ListedUser = row({
  id: text,
  email: text,
  name: text.nullable(),
  has_password: boolean,
  organizations: integer,
})

type Names = "listUsers" | "createSignInLink" | "resetPassword"
type Link = OutputOf<OperatorTable["createSignInLink"]>

export function userOperatorHandlers(deps: OperatorDeps): Pick<Handlers<OperatorTable>, Names> {
  return {
    listUsers: async () =>
      await ListedUser.all(
        deps.database,
        `SELECT u.id, u.email, u.name, u.password_hash IS NOT NULL AS has_password,
           (SELECT count(*) FROM memberships m WHERE m.user_id = u.id) AS organizations
         FROM users u ORDER BY u.id DESC LIMIT $1`,
        [usersListedMax],
      ),
    createSignInLink: async (call) => await makeLink(deps, call),
    resetPassword: async (call) => await resetPassword(deps, call),
  }
}

/** Without an address, for the first user. The password and the sessions stay as they are. */
async function makeLink(deps: OperatorDeps, call: CallOf<OperatorTable["createSignInLink"]>): Promise<Link> {
  const { email } = call.body
  return await change(deps, call, async (scope) => {
    const { sql } = scope
    const user = await (email === undefined ? findFirstUser(sql) : findUserByEmail(sql, email))
    if (!user)
      throw new Fault("not_found", `Cannot find ${email ? `a user with the address ${email}` : "a user"}`)
    const link = await linkFor(deps, scope, user)
    await tellOrganizations(scope, user.id, { action: "user.create_link" })
    return link
  })
}

/** The old password and every session end; the link signs in once, and the user then sets a new password. */
async function resetPassword(
  deps: OperatorDeps,
  call: CallOf<OperatorTable["resetPassword"]>,
): Promise<OutputOf<OperatorTable["resetPassword"]>> {
  const { email } = call.body
  return await change(deps, call, async (scope) => {
    const { sql, now, invalidate } = scope
    const user = await findUserByEmail(sql, email)
    if (!user) throw new Fault("not_found", `Cannot find a user with the address ${email}`)
    await updateUser(sql, user.id, { passwordHash: null }, now)
    const ended = await revokeSessionsOfUser(sql, user.id, now)
    for (const { id } of ended) invalidate({ table: "sessions", id })
    const link = await linkFor(deps, scope, user)
    await tellOrganizations(scope, user.id, { action: "user.reset_password" })
    return { ...link, sessions_ended: ended.length }
  })
}

async function linkFor(deps: OperatorDeps, { sql, now }: ChangeScope, { id, email }: User): Promise<Link> {
  const { link, expiresAt } = await createOneTimeLink(sql, id, now)
  return { id, email, link, url: signInAddress(deps, link), expires_at: expiresAt.toISOString() }
}
