/** Members of the organization and the invitations that bring them in. */
import { useQuery } from "@tanstack/react-query"
import { type ReactNode, useState } from "react"
import { type Role, isOwner, roles } from "../../../src/contract/access.ts"
import type { Invitation, Member, SentInvitation } from "../../../src/contract/platform/members.ts"
import { api, useWrite } from "../api.ts"
import { Button } from "../parts/button.tsx"
import { ErrorNotice } from "../parts/error-notice.tsx"
import { ConfirmDialog, FormDialog } from "../parts/dialog.tsx"
import { SelectField, TextField } from "../parts/field.tsx"
import { ago, day } from "../parts/format.ts"
import { ActionsMenu, MenuItem } from "../parts/menu.tsx"
import { MoreButton, usePages } from "../parts/more.tsx"
import { isLoopback } from "../parts/loopback.ts"
import { Badge, Empty, Loaded, Notice, Page } from "../parts/page.tsx"
import { SecretDialog } from "../parts/secret.tsx"
import { Table, actionsColumn } from "../parts/table.tsx"
import { useIsOwner, useOrganization, useSession } from "../session.ts"
import { useOpenRequest, useShown } from "../shell/open-request.ts"
import { T } from "../i18n/sentence.tsx"
import { t } from "../i18n/translate.ts"

const roleNames: Record<Role, string> = {
  primary_owner: t("Primary owner"),
  owner: t("Owner"),
  billing: t("Billing"),
  member: t("Member"),
  reviewer: t("Reviewer"),
}
const roleWords: Record<Role, string> = {
  primary_owner: t("Everything, and owners are theirs to choose."),
  owner: t("Everything but primary owners: members, keys, models, limits, billing."),
  billing: t("Reads, and changes billing: credit, limits, invoices. Runs no model."),
  member: t("Asks models, makes question sets and keys of their own."),
  reviewer: t("Reads, and labels what waits for review. Runs no model."),
}
const roleOptions = roles.map((value) => ({ value, label: roleNames[value] }))

/** The token is in the fragment, which browsers do not send. */
const joinLink = ({ accept_token }: SentInvitation): string | null =>
  accept_token === null ? null : `${location.origin}/join#token=${accept_token}`

type Open =
  | { readonly kind: "invite" }
  | { readonly kind: "role" | "remove"; readonly member: Member }
  | { readonly kind: "link"; readonly sent: SentInvitation }

export function MembersPage(): ReactNode {
  const { id: org_id } = useOrganization()
  const owner = useIsOwner()
  const [open, setOpen] = useState<Open | null>(null)
  useOpenRequest(() => owner && setOpen({ kind: "invite" }))
  const close = (): void => setOpen(null)
  const members = usePages(
    ["members", org_id],
    async (query) => await api.listMembers({ params: { org_id }, query }),
  )
  return (
    <Page
      title={t("Members")}
      about={t(
        "Members use models and read everything except the audit log. Owners also manage keys, members, billing and settings. Reviewers only label, and Billing only pays.",
      )}
      actions={
        owner ? (
          <Button kind="loud" icon="plus" onClick={() => setOpen({ kind: "invite" })}>
            {t("Invite")}
          </Button>
        ) : null
      }
    >
      <Loaded query={members} label={t("Loading members")}>
        {(rows) => <MemberTable rows={rows} owner={owner} onOpen={setOpen} />}
      </Loaded>
      <MoreButton query={members} />
      <Invitations owner={owner} onLink={(sent) => setOpen({ kind: "link", sent })} />
      {open?.kind === "invite" ? (
        <Invite onClose={close} onDone={(sent) => setOpen({ kind: "link", sent })} />
      ) : null}
      {open?.kind === "role" ? <ChangeRole member={open.member} onClose={close} /> : null}
      {open?.kind === "remove" ? <Remove member={open.member} onClose={close} /> : null}
      {open?.kind === "link" ? (
        <SecretDialog
          title={t("Invitation for {email}", { email: open.sent.email })}
          label={t("Invitation link")}
          secret={joinLink(open.sent)}
          onClose={close}
        >
          {isLoopback(location.hostname) ? (
            <Notice tone="warn">
              <T
                text="This link begins with {origin}, an address that works on this machine only. Open the console at the address that others reach, and take <b>New link</b> there; the server should have that address as <code>server.public_url</code>."
                origin={<code className="font-mono text-xs">{location.origin}</code>}
                b={(children) => <strong>{children}</strong>}
                code={(children) => <code className="font-mono text-xs">{children}</code>}
              />
            </Notice>
          ) : null}
          <p className="text-soft text-sm">
            {t("Send this link to them. It works once, until {expiresAt}.", {
              expiresAt: day(open.sent.expires_at),
            })}
          </p>
        </SecretDialog>
      ) : null}
    </Page>
  )
}

function MemberTable({
  rows,
  owner,
  onOpen,
}: {
  rows: readonly Member[]
  owner: boolean
  onOpen: (open: Open) => void
}): ReactNode {
  const me = useSession()?.user.id
  const shown = useShown()
  return (
    <Table
      label={t("Members")}
      rows={rows}
      rowKey={({ user_id }) => user_id}
      isMarked={({ user_id }) => user_id === shown}
      columns={[
        {
          name: t("Person"),
          cell: ({ name, email, user_id }) => (
            <>
              <span className="font-medium">{name ?? email}</span>{" "}
              {user_id === me ? <Badge tone="info">{t("You")}</Badge> : null}
              {name ? <span className="text-soft block text-xs">{email}</span> : null}
            </>
          ),
        },
        {
          name: t("Role"),
          cell: ({ role }) => <Badge tone={isOwner(role) ? "good" : "plain"}>{roleNames[role]}</Badge>,
        },
        { name: t("Joined"), cell: ({ created_at }) => day(created_at) },
        actionsColumn(owner, (member: Member) => (
          <ActionsMenu of={member.email}>
            <MenuItem icon="shield" onSelect={() => onOpen({ kind: "role", member })}>
              {t("Change role")}
            </MenuItem>
            <MenuItem icon="trash" danger onSelect={() => onOpen({ kind: "remove", member })}>
              {t("Remove")}
            </MenuItem>
          </ActionsMenu>
        )),
      ]}
    />
  )
}

function Invitations({
  owner,
  onLink,
}: {
  owner: boolean
  onLink: (sent: SentInvitation) => void
}): ReactNode {
  const { id: org_id } = useOrganization()
  const query = useQuery({
    queryKey: ["invitations", org_id],
    queryFn: async () => await api.listInvitations({ params: { org_id } }),
  })
  const refresh = [["invitations", org_id]]
  const resend = useWrite(
    async ({ id }: Invitation) => await api.resendInvitation({ params: { org_id, invitation_id: id } }),
    refresh,
    onLink,
  )
  const revoke = useWrite(
    async ({ id }: Invitation) => await api.revokeInvitation({ params: { org_id, invitation_id: id } }),
    refresh,
  )
  const error: unknown = resend.error ?? revoke.error
  return (
    <section aria-label={t("Pending invitations")} className="flex flex-col gap-3">
      <h2 className="text-sm font-semibold">{t("Pending invitations")}</h2>
      <ErrorNotice error={error} />
      <Loaded query={query} label={t("Loading invitations")}>
        {(rows) =>
          rows.length === 0 ? (
            <div className="panel">
              <Empty icon="people" title={t("No pending invitations")}>
                {owner ? t("Invite someone by email address; you get a link to send them.") : null}
              </Empty>
            </div>
          ) : (
            <Table
              label={t("Pending invitations")}
              rows={rows}
              rowKey={({ id }) => id}
              columns={[
                { name: t("Email"), cell: ({ email }) => <span className="font-medium">{email}</span> },
                { name: t("Role"), cell: ({ role }) => <Badge>{roleNames[role]}</Badge> },
                { name: t("Invited by"), cell: ({ invited_by }) => invited_by.name ?? invited_by.email },
                { name: t("Expires"), cell: ({ expires_at }) => ago(expires_at) },
                actionsColumn(owner, (invitation: Invitation) => (
                  <ActionsMenu of={invitation.email}>
                    <MenuItem icon="turn" onSelect={() => resend.mutate(invitation)}>
                      {t("New link")}
                    </MenuItem>
                    <MenuItem icon="trash" danger onSelect={() => revoke.mutate(invitation)}>
                      {t("Revoke")}
                    </MenuItem>
                  </ActionsMenu>
                )),
              ]}
            />
          )
        }
      </Loaded>
    </section>
  )
}

function Invite({
  onClose,
  onDone,
}: {
  onClose: () => void
  onDone: (sent: SentInvitation) => void
}): ReactNode {
  const { id: org_id } = useOrganization()
  const [email, setEmail] = useState("")
  const [role, setRole] = useState<Role>("member")
  const write = useWrite(
    async () => await api.createInvitation({ params: { org_id }, body: { email, role } }),
    [
      ["invitations", org_id],
      ["resources", org_id],
    ],
    onDone,
  )
  return (
    <FormDialog title={t("Invite someone")} submit={t("Invite")} write={write} onClose={onClose}>
      <TextField
        label={t("Email")}
        type="email"
        required
        autoFocus
        value={email}
        onChange={(event) => setEmail(event.target.value)}
      />
      <SelectField
        label={t("Role")}
        value={role}
        options={roleOptions}
        hint={roleWords[role]}
        onChange={(event) => setRole(event.target.value as Role)}
      />
    </FormDialog>
  )
}

function ChangeRole({ member, onClose }: { member: Member; onClose: () => void }): ReactNode {
  const { id: org_id } = useOrganization()
  const [role, setRole] = useState<Role>(member.role)
  const write = useWrite(
    async () => await api.updateMember({ params: { org_id, user_id: member.user_id }, body: { role } }),
    [["members", org_id], ["organizations"]],
    onClose,
  )
  return (
    <FormDialog
      title={t("Role of {name}", { name: member.name ?? member.email })}
      submit={t("Save")}
      write={write}
      onClose={onClose}
    >
      <SelectField
        label={t("Role")}
        value={role}
        options={roleOptions}
        hint={roleWords[role]}
        onChange={(event) => setRole(event.target.value as Role)}
      />
    </FormDialog>
  )
}

function Remove({ member, onClose }: { member: Member; onClose: () => void }): ReactNode {
  const { id: org_id } = useOrganization()
  return (
    <ConfirmDialog
      title={t("Remove {name}?", { name: member.name ?? member.email })}
      submit={t("Remove")}
      act={async () => await api.removeMember({ params: { org_id, user_id: member.user_id } })}
      refreshes={[["members", org_id]]}
      onClose={onClose}
    >
      {t("They lose access at once, and the keys they own in this organization are deleted.")}
    </ConfirmDialog>
  )
}
