/** Email and password, or single sign-on; used by the sign-in page and where a session ended under a page. */
import { queryOptions, useQuery } from "@tanstack/react-query"
import { type ReactNode, useState } from "react"
import type { SignInOptions } from "../../../src/contract/platform/sessions.ts"
import { ClientError, api, useWrite } from "../api.ts"
import { Button } from "../parts/button.tsx"
import { CopyButton } from "../parts/copy-button.tsx"
import { TextField } from "../parts/field.tsx"
import { Form } from "../parts/form.tsx"
import { Notice } from "../parts/page.tsx"
import { askPasskey, hasPasskeys } from "../parts/passkey.ts"
import { CodeField, isSignedIn } from "./second-step.tsx"
import { t } from "../i18n/translate.ts"

/** Until it is known, nothing is offered that may not be there. */
export const signInOptionsQuery = queryOptions({
  queryKey: ["sign-in-options"],
  staleTime: 60_000,
  queryFn: async () => await api.getSignInOptions(),
})

export function SignInForm({ email: known, onDone }: { email?: string; onDone: () => void }): ReactNode {
  const [email, setEmail] = useState(known ?? "")
  const [password, setPassword] = useState("")
  const [code, setCode] = useState<string | null>(null)
  const [isForgotten, setForgotten] = useState(false)
  const signIn = useWrite(
    async () => await createSession({ email, password, ...(code === null ? {} : { code }) }),
    [],
    (isIn) => (isIn ? onDone() : setCode("")),
  )
  const passkey = useWrite(signInWithPasskey, [], (isIn) => isIn && onDone())
  const singleSignOn = useWrite(startSingleSignOn, [])
  const { data: options } = useQuery(signInOptionsQuery)
  const latest = [singleSignOn, passkey].find(({ isIdle }) => !isIdle) ?? signIn
  const write = {
    isPending: signIn.isPending || passkey.isPending || singleSignOn.isPending,
    error: latest.error,
    mutate: () => {
      singleSignOn.reset()
      passkey.reset()
      signIn.mutate(undefined)
    },
  }
  if (isForgotten)
    return <ForgottenPassword email={email} by={options?.password_reset} onBack={() => setForgotten(false)} />
  return (
    <Form
      write={write}
      footer={
        <>
          <Button type="submit" kind="loud" busy={signIn.isPending}>
            {t("Sign in")}
          </Button>
          {options?.passkey_origin === location.origin && hasPasskeys() ? (
            <Button busy={passkey.isPending} onClick={() => passkey.mutate(undefined)}>
              {t("Use a passkey")}
            </Button>
          ) : null}
          <button
            type="button"
            className="text-soft hover:text-ink self-center text-xs underline"
            onClick={() => setForgotten(true)}
          >
            {t("Forgot your password?")}
          </button>
          {options?.single_sign_on ? (
            <button
              type="button"
              className="text-soft hover:text-ink self-center text-xs underline"
              onClick={() => singleSignOn.mutate(undefined)}
            >
              {t("Use single sign-on")}
            </button>
          ) : null}
        </>
      }
    >
      <TextField
        label={t("Email")}
        type="email"
        autoComplete="username"
        required
        autoFocus={!known}
        value={email}
        onChange={(event) => setEmail(event.target.value)}
      />
      <TextField
        label={t("Password")}
        type="password"
        autoComplete="current-password"
        required
        autoFocus={Boolean(known)}
        value={password}
        onChange={(event) => setPassword(event.target.value)}
      />
      {code === null ? null : <CodeField value={code} onText={setCode} />}
    </Form>
  )
}

async function createSession(body: { email: string; password: string; code?: string }): Promise<boolean> {
  try {
    return await isSignedIn(api.createSession({ body }))
  } catch (error) {
    if (body.code === undefined && error instanceof ClientError && error.status === 401)
      throw new Error(t("The email address or the password is wrong."), { cause: error })
    throw error
  }
}

/** False where the person changed their mind. */
async function signInWithPasskey(): Promise<boolean> {
  const passkey = await askPasskey()
  if (passkey) await api.createSession({ body: { passkey } })
  return passkey !== null
}

function ForgottenPassword({
  email: known,
  by,
  onBack,
}: {
  email: string
  by: SignInOptions["password_reset"] | undefined
  onBack: () => void
}): ReactNode {
  const [email, setEmail] = useState(known)
  const write = useWrite(async () => await api.requestPasswordReset({ body: { email } }), [])
  const back = (
    <button type="button" className="text-soft hover:text-ink self-center text-xs underline" onClick={onBack}>
      {t("Back to sign in")}
    </button>
  )
  if (by === "operator") {
    const command = `umpire users reset ${email || "you@example.com"}`
    return (
      <div className="flex flex-col gap-4">
        <p className="text-sm">
          {t(
            "This installation sends no mail. Ask your operator for a link that signs you in once; they get it on the server with:",
          )}
        </p>
        <div className="bg-sunken border-line flex items-center gap-2 rounded-lg border p-2.5">
          <code className="min-w-0 flex-1 font-mono text-xs break-all select-all">{command}</code>
          <CopyButton text={command} label={t("Copy command")} bare />
        </div>
        {back}
      </div>
    )
  }
  return (
    <Form
      write={write}
      footer={
        <>
          <Button type="submit" kind="loud" busy={write.isPending}>
            {t("Send me a link")}
          </Button>
          {back}
        </>
      }
    >
      <TextField
        label={t("Email")}
        type="email"
        autoComplete="username"
        required
        autoFocus
        hint={t("The link sets a new password. It works once, within an hour.")}
        value={email}
        onChange={(event) => setEmail(event.target.value)}
      />
      {write.isSuccess ? (
        <Notice tone="good">
          {t("If somebody here has this address, the link is on its way. Look in the spam folder too.")}
        </Notice>
      ) : null}
    </Form>
  )
}

/** Asks first, so that a provider that does not answer is said here and not on a page of JSON. */
async function startSingleSignOn(): Promise<void> {
  const response = await fetch("/v1/session/sso", { redirect: "manual" })
  if (response.type === "opaqueredirect") return location.assign("/v1/session/sso")
  throw new Error(t("Single sign-on is not available now. Try again in a moment."))
}
