/** Email and password, or single sign-on; used by the sign-in page and where a session ended under a page. */
import { queryOptions, useQuery } from "@tanstack/react-query"
import { type ReactNode, useState } from "react"
import { ClientError, api, useWrite } from "../api.ts"
import { Button } from "../parts/button.tsx"
import { TextField } from "../parts/field.tsx"
import { Form } from "../parts/form.tsx"

/** Until it is known, nothing is offered that may not be there. */
const optionsQuery = queryOptions({
  queryKey: ["sign-in-options"],
  staleTime: 60_000,
  queryFn: async () => await api.getSignInOptions(),
})

export function SignInForm({ email: known, onDone }: { email?: string; onDone: () => void }): ReactNode {
  const [email, setEmail] = useState(known ?? "")
  const [password, setPassword] = useState("")
  const signIn = useWrite(async () => await createSession(email, password), [], onDone)
  const singleSignOn = useWrite(startSingleSignOn, [])
  const { data: options } = useQuery(optionsQuery)
  const latest = singleSignOn.isIdle ? signIn : singleSignOn
  const write = {
    isPending: signIn.isPending || singleSignOn.isPending,
    error: latest.error,
    mutate: () => {
      singleSignOn.reset()
      signIn.mutate(undefined)
    },
  }
  return (
    <Form
      write={write}
      footer={
        <>
          <Button type="submit" kind="loud" busy={signIn.isPending}>
            Sign in
          </Button>
          {options?.single_sign_on ? (
            <button
              type="button"
              className="text-soft hover:text-ink self-center text-xs underline"
              onClick={() => singleSignOn.mutate(undefined)}
            >
              Use single sign-on
            </button>
          ) : null}
        </>
      }
    >
      <TextField
        label="Email"
        type="email"
        autoComplete="username"
        required
        autoFocus={!known}
        value={email}
        onChange={(event) => setEmail(event.target.value)}
      />
      <TextField
        label="Password"
        type="password"
        autoComplete="current-password"
        required
        autoFocus={Boolean(known)}
        value={password}
        onChange={(event) => setPassword(event.target.value)}
      />
    </Form>
  )
}

async function createSession(email: string, password: string): Promise<void> {
  try {
    await api.createSession({ body: { email, password } })
  } catch (error) {
    if (error instanceof ClientError && error.status === 401)
      throw new Error("The email address or the password is wrong.", { cause: error })
    throw error
  }
}

/** Asks first, so that a provider that does not answer is said here and not on a page of JSON. */
async function startSingleSignOn(): Promise<void> {
  const response = await fetch("/v1/session/sso", { redirect: "manual" })
  if (response.type === "opaqueredirect") return location.assign("/v1/session/sso")
  throw new Error("Single sign-on is not available now. Try again in a moment.")
}
