/** Sign-in: by password, by single sign-on, or by the one-time link that a first start prints. */
import { useQueryClient } from "@tanstack/react-query"
import { getRouteApi, useRouter } from "@tanstack/react-router"
import { type ReactNode, useCallback, useState } from "react"
import { api, sentenceOf } from "../api.ts"
import { asSentence } from "../parts/format.ts"
import { hashValue, useHashLink } from "../parts/hash-link.ts"
import { Loading, Notice } from "../parts/page.tsx"
import { Doorway } from "./doorway.tsx"
import { SignInForm } from "./sign-in-form.tsx"

const route = getRouteApi("/sign-in")

const ssoSentences: Record<string, string> = {
  expired: "The sign-in took too long. Start it again.",
  refused: "The single sign-on provider refused the sign-in.",
  unknown_user: "There is no user with this email address. Ask an owner of your organization to invite you.",
}

export function SignIn(): ReactNode {
  const { next, sso_error } = route.useSearch()
  const enter = useEnter(next)
  const { trying, error } = useOneTimeLink(enter)
  if (trying)
    return (
      <Doorway title="Signing you in">
        <Loading what="your session" />
      </Doorway>
    )
  return (
    <Doorway title="Sign in to Umpire">
      {error ? (
        <Notice tone="warn">
          {asSentence(error)} Sign in with your password, or get a new link on the server:{" "}
          <Command>umpire keys first</Command> prints one for the first user,{" "}
          <Command>umpire users link</Command> for any, and <Command>umpire users reset</Command> also removes
          a lost password.
        </Notice>
      ) : null}
      {sso_error ? <Notice tone="bad">{ssoSentences[sso_error] ?? "Single sign-on failed."}</Notice> : null}
      <SignInForm onDone={enter} />
      <p className="text-soft text-xs">
        First time here? The first start of <Command>umpire serve</Command> prints a link that signs you in
        once; <Command>umpire keys first</Command> prints another.
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

/** It works once, so it is tried once. */
function useOneTimeLink(enter: () => void): { trying: boolean; error: string | null } {
  const [trying, setTrying] = useState(() => Boolean(hashValue("link")))
  const [error, setError] = useState<string | null>(null)
  useHashLink("link", (link) => {
    setTrying(true)
    setError(null)
    api.createSession({ body: { link } }).then(enter, (failure: unknown) => {
      setTrying(false)
      setError(sentenceOf(failure))
    })
  })
  return { trying, error }
}
