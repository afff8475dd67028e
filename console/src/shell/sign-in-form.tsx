/** Email and password, or single sign-on; used by the sign-in page and where a session ended under a page. */
import { type FormEvent, type ReactNode, useState } from "react"
import { ClientError, api, sentenceOf } from "../api.ts"
import { Button } from "../parts/button.tsx"
import { TextField } from "../parts/field.tsx"
import { Notice } from "../parts/page.tsx"

export function SignInForm({ email: known, onDone }: { email?: string; onDone: () => void }): ReactNode {
  const [email, setEmail] = useState(known ?? "")
  const [password, setPassword] = useState("")
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<string | null>(null)
  const attempt = async (work: () => Promise<void>): Promise<void> => {
    setBusy(true)
    setError(null)
    try {
      await work()
    } catch (failure) {
      setError(inWords(failure))
    } finally {
      setBusy(false)
    }
  }
  const send = (event: FormEvent): void => {
    event.preventDefault()
    void attempt(async () => {
      await api.createSession({ body: { email, password } })
      onDone()
    })
  }
  return (
    <form onSubmit={send} className="flex flex-col gap-4">
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
      {error ? <Notice tone="bad">{error}</Notice> : null}
      <Button type="submit" kind="loud" busy={busy}>
        Sign in
      </Button>
      <button
        type="button"
        className="text-soft hover:text-ink self-center text-xs underline"
        onClick={() => void attempt(goToSingleSignOn)}
      >
        Use single sign-on
      </button>
    </form>
  )
}

/** Asks first, so that a server without single sign-on answers here and not on a page of JSON. */
async function goToSingleSignOn(): Promise<void> {
  const response = await fetch("/v1/session/sso", { redirect: "manual" })
  if (response.type === "opaqueredirect") return location.assign("/v1/session/sso")
  if (response.status === 404) throw new Error("Single sign-on is not set up on this server.")
  throw new Error("Single sign-on does not answer now; try again in a moment.")
}

function inWords(error: unknown): string {
  if (error instanceof ClientError && error.status === 401)
    return "The email address or the password is not right."
  if (error instanceof ClientError && error.status === 429)
    return "Too many attempts. Wait a little, then try again."
  return sentenceOf(error)
}
