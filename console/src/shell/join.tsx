/** Accepting an invitation: as a new user with a password, or with the session one already has. */
import { useQuery, useQueryClient } from "@tanstack/react-query"
import { Link, useRouter } from "@tanstack/react-router"
import { type ReactNode, useState } from "react"
import type { InvitationDetails } from "../../../src/contract/platform/members.ts"
import { passwordCharactersMin } from "../../../src/contract/platform/sessions.ts"
import { ClientError, api, useWrite } from "../api.ts"
import { Button } from "../parts/button.tsx"
import { TextField } from "../parts/field.tsx"
import { Form } from "../parts/form.tsx"
import { day } from "../parts/format.ts"
import { useHashValue } from "../parts/hash-link.ts"
import { Loaded, Loading, Notice } from "../parts/page.tsx"
import { sessionQuery } from "../session.ts"
import { Doorway } from "./doorway.tsx"
import { homeOf } from "./places.ts"
import { T } from "../i18n/sentence.tsx"
import { t } from "../i18n/translate.ts"

export function Join(): ReactNode {
  const token = useHashValue("token")
  const session = useQuery(sessionQuery)
  const invitation = useQuery({
    queryKey: ["invitation", token],
    enabled: token !== null,
    queryFn: async () => await api.describeInvitation({ body: { token: token ?? "" } }),
  })
  const unknown = invitation.error instanceof ClientError && invitation.error.status === 404
  if (!token || unknown)
    return (
      <Doorway title={t("Join an organization")}>
        <Notice tone="bad">
          {token
            ? t(
                "This invitation link is not valid. It may have been replaced by a newer one: ask for the latest link.",
              )
            : t("This link holds no invitation. Open the whole link that you were sent.")}
        </Notice>
        <SignInLink />
      </Doorway>
    )
  if (session.isPending || invitation.isPending)
    return (
      <Doorway title={t("Join an organization")}>
        <Loading label={t("Loading the invitation")} />
      </Doorway>
    )
  const title = invitation.data
    ? t("Join {organizationName}", { organizationName: invitation.data.organization_name })
    : t("Join an organization")
  return (
    <Doorway title={title}>
      <Loaded query={invitation} label={t("Loading the invitation")}>
        {(details) => (
          <Invited details={details} token={token} signedInAs={session.data?.user.email ?? null} />
        )}
      </Loaded>
    </Doorway>
  )
}

const roleSentences = {
  primary_owner: t("a primary owner"),
  billing: t("somebody who pays"),
  reviewer: t("a reviewer"),
  owner: t("an owner"),
  member: t("a member"),
} as const

function Invited({
  details,
  token,
  signedInAs,
}: {
  details: InvitationDetails
  token: string
  signedInAs: string | null
}): ReactNode {
  const { state, invited_by, email, role, user_exists } = details
  if (state !== "open") return <Closed details={details} />
  const signInFirst = signedInAs === null && user_exists
  const someoneElse = signedInAs !== null && signedInAs.toLowerCase() !== email.toLowerCase()
  return (
    <>
      <p className="text-sm wrap-anywhere">
        <T
          text="{inviter} invited {email} to join as {role}."
          inviter={
            <>
              <strong>{invited_by.name ?? invited_by.email}</strong>
              {invited_by.name ? ` (${invited_by.email})` : ""}
            </>
          }
          email={<strong>{email}</strong>}
          role={roleSentences[role]}
        />
      </p>
      {signInFirst ? (
        <>
          <Notice tone="info">{t("You have an account already. Sign in, then open this link again.")}</Notice>
          <SignInLink />
        </>
      ) : someoneElse ? (
        <Notice tone="warn">
          {t("You are signed in as {signedInAs}. Sign out, then open this link again to join as {email}.", {
            signedInAs,
            email,
          })}
        </Notice>
      ) : (
        <JoinForm token={token} signedInAs={signedInAs} />
      )}
    </>
  )
}

function Closed({ details }: { details: InvitationDetails }): ReactNode {
  const { state, organization_name, invited_by, expires_at } = details
  const inviter = invited_by.name ?? invited_by.email
  const sentences = {
    open: "",
    accepted: t(
      "This invitation to {organizationName} has already been used. Sign in to open the organization.",
      { organizationName: organization_name },
    ),
    revoked: t("This invitation to {organizationName} was withdrawn. Ask {inviter} for a new one.", {
      organizationName: organization_name,
      inviter,
    }),
    expired: t("This invitation to {organizationName} expired on {expiresAt}. Ask {inviter} for a new one.", {
      organizationName: organization_name,
      expiresAt: day(expires_at),
      inviter,
    }),
  }
  return (
    <>
      <Notice tone={state === "accepted" ? "info" : "warn"}>{sentences[state]}</Notice>
      <SignInLink />
    </>
  )
}

function SignInLink(): ReactNode {
  return (
    <Link to="/" className="text-accent self-center text-sm underline">
      {t("Sign in")}
    </Link>
  )
}

function JoinForm({ token, signedInAs }: { token: string; signedInAs: string | null }): ReactNode {
  const [name, setName] = useState("")
  const [password, setPassword] = useState("")
  const queries = useQueryClient()
  const router = useRouter()
  const write = useWrite(
    async () =>
      await api.acceptInvitation({
        body: signedInAs === null ? { token, password, ...(name.trim() ? { name } : {}) } : { token },
      }),
    [],
    ({ organization_id, role }) => {
      queries.clear()
      void router.navigate({ to: homeOf(role), params: { orgId: organization_id } })
    },
  )
  return (
    <Form
      write={write}
      footer={
        <Button type="submit" kind="loud" busy={write.isPending}>
          {t("Join")}
        </Button>
      }
    >
      {signedInAs === null ? (
        <>
          <TextField
            label={t("Your name")}
            autoComplete="name"
            value={name}
            onChange={(event) => setName(event.target.value)}
          />
          <TextField
            label={t("Choose a password")}
            type="password"
            autoComplete="new-password"
            required
            minLength={passwordCharactersMin}
            hint={t("At least {passwordCharactersMin} characters.", { passwordCharactersMin })}
            value={password}
            onChange={(event) => setPassword(event.target.value)}
          />
        </>
      ) : (
        <p className="text-sm">
          <T
            text="You are signed in as {signedInAs} and join with this account."
            signedInAs={<strong>{signedInAs}</strong>}
          />
        </p>
      )}
    </Form>
  )
}
