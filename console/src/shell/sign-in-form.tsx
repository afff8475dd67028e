/** Email and password, or single sign-on; used by the sign-in page and where a session ended under a page. */
import { type ReactNode, useState } from "react"
import { ClientError, api, useWrite } from "../api.ts"
import { Button } from "../parts/button.tsx"
import { TextField } from "../parts/field.tsx"
import { Form } from "../parts/form.tsx"

export function SignInForm({ email: known, onDone }: { email?: string; onDone: () => void }): ReactNode {
  const [email, setEmail] = useState(known ?? "")
  const [password, setPassword] = useState("")
  const signIn = useWrite(async () => await createSession(email, password), [], onDone)
  const singleSignOn = useWrite(startSingleSignOn, [])
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
          <button
            type="button"
            className="text-soft hover:text-ink self-center text-xs underline"
            onClick={() => singleSignOn.mutate(undefined)}
          >
            Use single sign-on
          </button>
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

/** Asks first, so that a server without single sign-on answers here and not on a page of JSON. */
async function startSingleSignOn(): Promise<void> {
  const response = await fetch("/v1/session/sso", { redirect: "manual" })
  if (response.type === "opaqueredirect") return location.assign("/v1/session/sso")
  if (response.status === 404) throw new Error("Single sign-on is not set up on this server.")
  throw new Error("Single sign-on is not available now. Try again in a moment.")
}
