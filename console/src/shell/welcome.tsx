/** The first-run screen: an email address and a password, so that the first owner can sign in again. */
import { useQuery, useQueryClient } from "@tanstack/react-query"
import { getRouteApi, useRouter } from "@tanstack/react-router"
import { type ReactNode, useState } from "react"
import { passwordCharactersMin } from "../../../src/contract/platform/sessions.ts"
import { api, useWrite } from "../api.ts"
import { Button } from "../parts/button.tsx"
import { TextField } from "../parts/field.tsx"
import { Form } from "../parts/form.tsx"
import { Loading } from "../parts/page.tsx"
import { sessionQuery, skipSetup } from "../session.ts"
import { Doorway } from "./doorway.tsx"
import { T } from "../i18n/sentence.tsx"
import { t } from "../i18n/translate.ts"

const route = getRouteApi("/welcome")

export function Welcome(): ReactNode {
  const { next } = route.useSearch()
  const router = useRouter()
  const session = useQuery(sessionQuery).data
  const proceed = (): void =>
    void router.navigate({ href: next?.startsWith("/o/") ? next : "/", replace: true })
  const skip = (): void => {
    skipSetup()
    proceed()
  }
  if (!session) return <Loading label={t("Loading your account")} />
  const { email_changeable, user } = session
  return (
    <Doorway title={t("Welcome to Umpire")}>
      <p className="text-soft text-sm">
        {t(
          "You signed in with a one-time link. Choose how you sign in from now on; sessions end after 12 idle hours.",
        )}
      </p>
      <SetUpForm placeholder={email_changeable ? user.email : null} email={user.email} onDone={proceed} />
      <button type="button" className="text-soft hover:text-ink self-center text-xs underline" onClick={skip}>
        {t("Skip for now")}
      </button>
    </Doorway>
  )
}

function SetUpForm({
  placeholder,
  email: current,
  onDone,
}: {
  /** The address of a first start, which can be replaced; null for an address of one's own. */
  placeholder: string | null
  email: string
  onDone: () => void
}): ReactNode {
  const queries = useQueryClient()
  const [email, setEmail] = useState("")
  const [name, setName] = useState("")
  const [password, setPassword] = useState("")
  const write = useWrite(
    async () => {
      const changes = {
        ...(placeholder !== null && email ? { email } : {}),
        ...(name.trim() ? { name } : {}),
      }
      if (Object.keys(changes).length > 0) {
        await api.updateSessionUser({ body: changes })
        // The address can be replaced once: should the password be refused, it is not asked for again.
        await queries.invalidateQueries({ queryKey: sessionQuery.queryKey })
      }
      await api.setPassword({ body: { password } })
      await queries.invalidateQueries({ queryKey: sessionQuery.queryKey })
    },
    [],
    onDone,
  )
  return (
    <Form
      write={write}
      footer={
        <Button type="submit" kind="loud" busy={write.isPending}>
          {t("Save and continue")}
        </Button>
      }
    >
      {placeholder === null ? (
        <p className="text-sm">
          <T text="You sign in as {current}." current={<strong>{current}</strong>} />
        </p>
      ) : (
        <TextField
          label={t("Email")}
          type="email"
          autoComplete="username"
          autoFocus
          placeholder="you@example.com"
          hint={t("You sign in with it. Left empty, it stays {placeholder}.", { placeholder })}
          value={email}
          onChange={(event) => setEmail(event.target.value)}
        />
      )}
      <TextField
        label={t("Your name (optional)")}
        autoComplete="name"
        maxLength={200}
        value={name}
        onChange={(event) => setName(event.target.value)}
      />
      <TextField
        label={t("Password")}
        type="password"
        autoComplete="new-password"
        required
        minLength={passwordCharactersMin}
        hint={t("At least {passwordCharactersMin} characters.", { passwordCharactersMin })}
        value={password}
        onChange={(event) => setPassword(event.target.value)}
      />
    </Form>
  )
}
