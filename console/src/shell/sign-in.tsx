/** Sign-in: by password, by single sign-on, or by the one-time link that a first start prints. */
import { useQueryClient } from "@tanstack/react-query"
import { getRouteApi, useRouter } from "@tanstack/react-router"
import { type ReactNode, useCallback, useState } from "react"
import { passwordCharactersMin } from "../../../src/contract/platform/sessions.ts"
import { api, sentenceOf, useWrite } from "../api.ts"
import { Button } from "../parts/button.tsx"
import { TextField } from "../parts/field.tsx"
import { Form } from "../parts/form.tsx"
import { asSentence } from "../parts/format.ts"
import { hashValue, useHashLink } from "../parts/hash-link.ts"
import { Loading, Notice } from "../parts/page.tsx"
import { Doorway } from "./doorway.tsx"
import { CodeField, isSignedIn } from "./second-step.tsx"
import { SignInForm } from "./sign-in-form.tsx"
import { T } from "../i18n/sentence.tsx"
import { t } from "../i18n/translate.ts"

const route = getRouteApi("/sign-in")

const ssoSentences: Record<string, string> = {
  expired: t("The sign-in took too long. Start it again."),
  refused: t("The single sign-on provider refused the sign-in."),
  unknown_user: t(
    "There is no user with this email address. Ask an owner of your organization to invite you.",
  ),
}

export function SignIn(): ReactNode {
  const { next, sso_error } = route.useSearch()
  const enter = useEnter(next)
  const { trying, error, link } = useOneTimeLink(enter)
  const [reset, setReset] = useState<string | null>(null)
  useHashLink("reset", setReset)
  if (reset !== null)
    return (
      <Doorway title={t("Set a new password")}>
        <NewPasswordForm key={reset} link={reset} onDone={enter} onBack={() => setReset(null)} />
      </Doorway>
    )
  if (link !== null)
    return (
      <Doorway title={t("One more step")}>
        <LinkCodeForm key={link} link={link} onDone={enter} />
      </Doorway>
    )
  if (trying)
    return (
      <Doorway title={t("Signing you in")}>
        <Loading label={t("Loading your session")} />
      </Doorway>
    )
  return (
    <Doorway title={t("Sign in to Umpire")}>
      {error ? (
        <Notice tone="warn">
          {asSentence(error)}{" "}
          <T
            text="Sign in with your password, or get a new link on the server: {first} prints one for the first user, {link} for any, and {reset} also removes a lost password."
            first={<Command>umpire keys first</Command>}
            link={<Command>umpire users link</Command>}
            reset={<Command>umpire users reset</Command>}
          />
        </Notice>
      ) : null}
      {sso_error ? (
        <Notice tone="bad">{ssoSentences[sso_error] ?? t("Single sign-on failed.")}</Notice>
      ) : null}
      <SignInForm onDone={enter} />
      <p className="text-soft text-xs">
        <T
          text="First time here? The first start of {serve} prints a link that signs you in once; {first} prints another."
          serve={<Command>umpire serve</Command>}
          first={<Command>umpire keys first</Command>}
        />
      </p>
    </Doorway>
  )
}

function Command({ children }: { children: string }): ReactNode {
  return <code className="font-mono whitespace-nowrap">{children}</code>
}

function useEnter(next: string | undefined): () => void {
  const queries = useQueryClient()
  const router = useRouter()
  return useCallback(() => {
    queries.clear()
    // Only an address of this console: anything else could be someone's trap.
    const target = next?.startsWith("/o/") ? next : "/"
    void router.navigate({ href: target, replace: true })
  }, [queries, router, next])
}

interface OneTimeLink {
  readonly trying: boolean
  readonly error: string | null
  /** A link that is right, and needs a code too. */
  readonly link: string | null
}

/** It works once, so it is tried once. */
function useOneTimeLink(enter: () => void): OneTimeLink {
  const [state, setState] = useState<OneTimeLink>(() => ({
    ...settled,
    trying: Boolean(hashValue("link")),
  }))
  useHashLink("link", (link) => {
    setState({ ...settled, trying: true })
    isSignedIn(api.createSession({ body: { link } })).then(
      (isIn) => (isIn ? enter() : setState({ ...settled, link })),
      (failure: unknown) => setState({ ...settled, error: sentenceOf(failure) }),
    )
  })
  return state
}

const settled: OneTimeLink = { trying: false, error: null, link: null }

function LinkCodeForm({ link, onDone }: { link: string; onDone: () => void }): ReactNode {
  const [code, setCode] = useState("")
  const write = useWrite(
    async () => await isSignedIn(api.createSession({ body: { link, code } })),
    [],
    onDone,
  )
  return (
    <Form
      write={write}
      footer={
        <Button type="submit" kind="loud" busy={write.isPending}>
          {t("Sign in")}
        </Button>
      }
    >
      <CodeField value={code} onText={setCode} />
    </Form>
  )
}

function NewPasswordForm({
  link,
  onDone,
  onBack,
}: {
  link: string
  onDone: () => void
  onBack: () => void
}): ReactNode {
  const [password, setPassword] = useState("")
  const [code, setCode] = useState<string | null>(null)
  const write = useWrite(
    async () =>
      await isSignedIn(
        api.finishPasswordReset({ body: { link, password, ...(code === null ? {} : { code }) } }),
      ),
    [],
    (isIn) => (isIn ? onDone() : setCode("")),
  )
  return (
    <Form
      write={write}
      footer={
        <>
          <Button type="submit" kind="loud" busy={write.isPending}>
            {t("Set password and sign in")}
          </Button>
          <button
            type="button"
            className="text-soft hover:text-ink self-center text-xs underline"
            onClick={onBack}
          >
            {t("Back to sign in")}
          </button>
        </>
      }
    >
      <TextField
        label={t("New password")}
        type="password"
        autoComplete="new-password"
        required
        autoFocus
        minLength={passwordCharactersMin}
        hint={t("At least {passwordCharactersMin} characters. Your other sessions are signed out.", {
          passwordCharactersMin,
        })}
        value={password}
        onChange={(event) => setPassword(event.target.value)}
      />
      {code === null ? null : <CodeField value={code} onText={setCode} />}
    </Form>
  )
}
