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
      <Doorway title="Join an organization">
        <Notice tone="bad">
          {token
            ? "This invitation link is not valid. It may have been replaced by a newer one: ask for the latest link."
            : "This link holds no invitation. Open the whole link that you were sent."}
        </Notice>
        <SignInLink />
      </Doorway>
    )
  if (session.isPending || invitation.isPending)
    return (
      <Doorway title="Join an organization">
        <Loading what="the invitation" />
      </Doorway>
    )
  const title = invitation.data ? `Join ${invitation.data.organization_name}` : "Join an organization"
  return (
    <Doorway title={title}>
      <Loaded query={invitation} what="the invitation">
        {(details) => (
          <Invited details={details} token={token} signedInAs={session.data?.user.email ?? null} />
        )}
      </Loaded>
    </Doorway>
  )
}

const roleSentences = {
  primary_owner: "a primary owner",
  billing: "somebody who pays",
  reviewer: "a reviewer",
  owner: "an owner",
  member: "a member",
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
        <strong>{invited_by.name ?? invited_by.email}</strong>
        {invited_by.name ? ` (${invited_by.email})` : ""} invited <strong>{email}</strong> to join as{" "}
        {roleSentences[role]}.
      </p>
      {signInFirst ? (
        <>
          <Notice tone="info">You have an account already. Sign in, then open this link again.</Notice>
          <SignInLink />
        </>
      ) : someoneElse ? (
        <Notice tone="warn">
          You are signed in as {signedInAs}. Sign out, then open this link again to join as {email}.
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
    accepted: `This invitation to ${organization_name} has already been used. Sign in to open the organization.`,
    revoked: `This invitation to ${organization_name} was withdrawn. Ask ${inviter} for a new one.`,
    expired: `This invitation to ${organization_name} expired on ${day(expires_at)}. Ask ${inviter} for a new one.`,
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
      Sign in
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
          Join
        </Button>
      }
    >
      {signedInAs === null ? (
        <>
          <TextField
            label="Your name"
            autoComplete="name"
            value={name}
            onChange={(event) => setName(event.target.value)}
          />
          <TextField
            label="Choose a password"
            type="password"
            autoComplete="new-password"
            required
            minLength={passwordCharactersMin}
            hint={`At least ${passwordCharactersMin} characters.`}
            value={password}
            onChange={(event) => setPassword(event.target.value)}
          />
        </>
      ) : (
        <p className="text-sm">
          You are signed in as <strong>{signedInAs}</strong> and join with this account.
        </p>
      )}
    </Form>
  )
}
