/** Sign-in: by password, by single sign-on, or by the one-time link that a first start prints. */
import { useQueryClient } from "@tanstack/react-query"
import { getRouteApi, useRouter } from "@tanstack/react-router"
import { type ReactNode, useCallback, useEffect, useRef, useState } from "react"
import { api, sentenceOf } from "../api.ts"
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
          {error} Sign in with your password, or ask the operator to run <code>umpire users reset</code> for a
          new link.
        </Notice>
      ) : null}
      {sso_error ? <Notice tone="bad">{ssoSentences[sso_error] ?? "Single sign-on failed."}</Notice> : null}
      <SignInForm onDone={enter} />
      <p className="text-soft text-xs">
        First time here? <code className="font-mono">umpire serve</code> prints a link that signs you in once.
      </p>
    </Doorway>
  )
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

/** The link is in the fragment, which browsers do not send: it reaches no log. It works once, so it is tried once. */
function useOneTimeLink(enter: () => void): { trying: boolean; error: string | null } {
  const [link] = useState(() => new URLSearchParams(location.hash.slice(1)).get("link"))
  const [error, setError] = useState<string | null>(null)
  const tried = useRef(false)
  useEffect(() => {
    if (!link || tried.current) return
    tried.current = true
    history.replaceState(history.state, "", location.pathname + location.search)
    api.createSession({ body: { link } }).then(enter, (failure: unknown) => setError(sentenceOf(failure)))
  }, [link, enter])
  return { trying: link !== null && error === null, error }
}
