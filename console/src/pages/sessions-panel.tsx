/** The sessions of the signed-in user and, for owners, of all members; each can be ended. */
import type { SingleSignOnPolicy } from "../../../src/contract/platform/sessions.ts"
import { useQuery } from "@tanstack/react-query"
import { type ReactNode, useState } from "react"
import type { OwnSession } from "../../../src/contract/platform/sessions.ts"
import { api, useWrite } from "../api.ts"
import { Button } from "../parts/button.tsx"
import { ConfirmDialog } from "../parts/dialog.tsx"
import { CheckField } from "../parts/field.tsx"
import { ErrorNotice } from "../parts/error-notice.tsx"
import { ago, orWords } from "../parts/format.ts"
import { Badge, Loaded, Notice, Panel } from "../parts/page.tsx"
import { useIsOwner, useOrganization } from "../session.ts"
import { browserName } from "./browser-name.ts"
import { t } from "../i18n/translate.ts"

type Shown = Omit<OwnSession, "current"> & { readonly current?: boolean; readonly who?: string }

const methodNames: Record<NonNullable<OwnSession["method"]>, string> = {
  password: t("Password"),
  link: t("One-time link"),
  invitation: t("Invitation"),
  sso: t("Single sign-on"),
  passkey: t("Passkey"),
}

const useOwnSessions = () =>
  useQuery({ queryKey: ["sessions"], queryFn: async () => await api.listSessions() })

export function OwnSessionsPanel(): ReactNode {
  const query = useOwnSessions()
  return (
    <Panel title={t("Your sessions")}>
      <Loaded query={query} label={t("Loading sessions")}>
        {(sessions) => (
          <SessionList
            sessions={sessions}
            refreshes={[["sessions"]]}
            end={async (session_id) => await api.endSession({ params: { session_id } })}
          />
        )}
      </Loaded>
    </Panel>
  )
}

/** Owners only. */
export function MemberSessionsPanel(): ReactNode {
  const { id: org_id } = useOrganization()
  const owner = useIsOwner()
  const query = useQuery({
    queryKey: ["member-sessions", org_id],
    enabled: owner,
    queryFn: async () => await api.listMemberSessions({ params: { org_id } }),
  })
  const present = useOwnSessions().data?.find(({ current }) => current)?.id
  if (!owner) return null
  return (
    <Panel title={t("Sessions of members")}>
      <Loaded query={query} label={t("Loading sessions")}>
        {(sessions) => (
          <SessionList
            sessions={sessions.map(({ user, ...session }) => ({
              ...session,
              who: user.name ?? user.email,
              current: session.id === present,
            }))}
            refreshes={[["member-sessions", org_id], ["sessions"]]}
            end={async (session_id) => await api.endMemberSession({ params: { org_id, session_id } })}
          />
        )}
      </Loaded>
    </Panel>
  )
}

/** Nothing where no provider is configured; owners only. */
export function SingleSignOnPanel(): ReactNode {
  const owner = useIsOwner()
  const present = useOwnSessions().data?.find(({ current }) => current)
  const { id: org_id } = useOrganization()
  const options = useQuery({
    queryKey: ["sign-in-options"],
    queryFn: async () => await api.getSignInOptions(),
  })
  const policy = useQuery({
    queryKey: ["single-sign-on", org_id],
    enabled: owner,
    queryFn: async () => await api.getSingleSignOnPolicy({ params: { org_id } }),
  })
  const write = useWrite(
    async (required: boolean) => await api.putSingleSignOnPolicy({ params: { org_id }, body: { required } }),
    [["single-sign-on", org_id]],
  )
  if (!owner || !options.data?.single_sign_on || !policy.data) return null
  const { required } = policy.data
  // The server refuses it too: users would lock themselves out.
  const mustSignInFirst = !required && present !== undefined && present.method !== "sso"
  return (
    <Panel title={t("Single sign-on")}>
      <div className="flex flex-col gap-3">
        <p className="text-soft text-sm wrap-anywhere">
          {joinSentence(policy.data)} {t("The operator of this server sets this.")}
        </p>
        <CheckField
          label={t("Require single sign-on")}
          hint={t(
            "Sessions that began in another way are refused in this organization. API keys go on working.",
          )}
          checked={required}
          disabled={mustSignInFirst || write.isPending}
          onChange={(event) => write.mutate(event.target.checked)}
        />
        {mustSignInFirst ? (
          <Notice tone="info">{t("To require it, sign in with single sign-on yourself first.")}</Notice>
        ) : null}
        <ErrorNotice error={write.error} />
      </div>
    </Panel>
  )
}

function SessionList({
  sessions,
  refreshes,
  end,
}: {
  sessions: readonly Shown[]
  refreshes: readonly (readonly string[])[]
  end: (id: string) => Promise<void>
}): ReactNode {
  const [ending, setEnding] = useState<Shown | null>(null)
  return (
    <>
      <ul className="divide-line -my-2.5 divide-y text-sm" aria-label={t("Sessions")}>
        {sessions.map((session) => (
          <li key={session.id} className="flex items-center justify-between gap-3 py-2.5">
            <span className="min-w-0">
              <span className="font-medium wrap-anywhere">
                {session.who ?? session.ip ?? t("Unknown address")}
              </span>{" "}
              {session.current ? <Badge tone="good">{t("This session")}</Badge> : null}
              <span className="text-soft block text-xs break-words">
                {[
                  session.method === null ? null : methodNames[session.method],
                  session.who === undefined ? null : session.ip,
                  t("seen {ago}", { ago: ago(session.last_seen_at) }),
                  session.user_agent === null ? null : browserName(session.user_agent),
                ]
                  .filter((part) => part !== null)
                  .join(" · ")}
              </span>
            </span>
            {session.current ? null : (
              <Button small className="shrink-0" onClick={() => setEnding(session)}>
                {t("End")}
              </Button>
            )}
          </li>
        ))}
      </ul>
      {ending ? (
        <ConfirmDialog
          title={t("End the session?")}
          submit={t("End session")}
          act={async () => await end(ending.id)}
          refreshes={refreshes}
          onClose={() => setEnding(null)}
        >
          {ending.who === undefined
            ? t("Whoever uses it has to sign in again there.")
            : t("{who} has to sign in again there.", { who: ending.who })}
        </ConfirmDialog>
      ) : null}
    </>
  )
}

function joinSentence({
  email_domains,
  groups,
  role,
}: Pick<SingleSignOnPolicy, "email_domains" | "groups" | "role">): string {
  const asOwners = role === "owner"
  const domains = orWords(email_domains)
  const names = orWords(groups)
  if (domains && names)
    return asOwners
      ? t(
          "People with a verified address at {domains}, or of the group {names}, become owners when they sign in.",
          { domains, names },
        )
      : t(
          "People with a verified address at {domains}, or of the group {names}, become members when they sign in.",
          { domains, names },
        )
  if (domains)
    return asOwners
      ? t("People with a verified address at {domains}, become owners when they sign in.", { domains })
      : t("People with a verified address at {domains}, become members when they sign in.", { domains })
  if (names)
    return asOwners
      ? t("People of the group {names}, become owners when they sign in.", { names })
      : t("People of the group {names}, become members when they sign in.", { names })
  return t("Nobody joins by signing in: people are invited first.")
}
