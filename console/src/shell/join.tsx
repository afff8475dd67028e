/** Accepting an invitation: as a new user with a password, or with the session one already has. */
import { useQuery, useQueryClient } from "@tanstack/react-query"
import { useRouter } from "@tanstack/react-router"
import { type ReactNode, useState } from "react"
import { api, useWrite } from "../api.ts"
import { Button } from "../parts/button.tsx"
import { TextField } from "../parts/field.tsx"
import { Form } from "../parts/form.tsx"
import { Loading, Notice } from "../parts/page.tsx"
import { sessionQuery } from "../session.ts"
import { Doorway } from "./doorway.tsx"

const passwordCharactersMin = 8

export function Join(): ReactNode {
  const [token] = useState(() => new URLSearchParams(location.hash.slice(1)).get("token"))
  const session = useQuery(sessionQuery)
  if (!token)
    return (
      <Doorway title="Join an organization">
        <Notice tone="bad">This address holds no invitation. Open the whole link that you were sent.</Notice>
      </Doorway>
    )
  if (session.isPending)
    return (
      <Doorway title="Join an organization">
        <Loading what="your session" />
      </Doorway>
    )
  return (
    <Doorway title="Join an organization">
      <JoinForm token={token} email={session.data?.user.email ?? null} />
    </Doorway>
  )
}

function JoinForm({ token, email }: { token: string; email: string | null }): ReactNode {
  const [name, setName] = useState("")
  const [password, setPassword] = useState("")
  const queries = useQueryClient()
  const router = useRouter()
  const write = useWrite(
    async () =>
      await api.acceptInvitation({
        body: email === null ? { token, password, ...(name.trim() ? { name } : {}) } : { token },
      }),
    [],
    ({ organization_id }) => {
      queries.clear()
      void router.navigate({ to: "/o/$orgId/playground", params: { orgId: organization_id } })
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
      {email === null ? (
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
          You are signed in as <strong>{email}</strong> and join with this account.
        </p>
      )}
    </Form>
  )
}
