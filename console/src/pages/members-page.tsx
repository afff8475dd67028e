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

const roleNames: Record<Role, string> = {
  primary_owner: "Primary owner",
  owner: "Owner",
  billing: "Billing",
  member: "Member",
  reviewer: "Reviewer",
}
const roleWords: Record<Role, string> = {
  primary_owner: "Everything, and owners are theirs to choose.",
  owner: "Everything but primary owners: members, keys, models, limits, billing.",
  billing: "Reads, and changes billing: credit, limits, invoices. Runs no model.",
  member: "Asks models, makes question sets and keys of their own.",
  reviewer: "Reads, and labels what waits for review. Runs no model.",
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
      title="Members"
      about="Members use models and read everything except the audit log. Owners also manage keys, members, billing and settings. Reviewers only label, and Billing only pays."
      actions={
        owner ? (
          <Button kind="loud" icon="plus" onClick={() => setOpen({ kind: "invite" })}>
            Invite
          </Button>
        ) : null
      }
    >
      <Loaded query={members} what="members">
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
          title={`Invitation for ${open.sent.email}`}
          label="Invitation link"
          secret={joinLink(open.sent)}
          onClose={close}
        >
          {isLoopback(location.hostname) ? (
            <Notice tone="warn">
              This link begins with <code className="font-mono text-xs">{location.origin}</code>, an address
              that works on this machine only. Open the console at the address that others reach, and take{" "}
              <strong>New link</strong> there; the server should have that address as{" "}
              <code className="font-mono text-xs">server.public_url</code>.
            </Notice>
          ) : null}
          <p className="text-soft text-sm">
            Send this link to them. It works once, until {day(open.sent.expires_at)}.
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
      label="Members"
      rows={rows}
      rowKey={({ user_id }) => user_id}
      isMarked={({ user_id }) => user_id === shown}
      columns={[
        {
          name: "Person",
          cell: ({ name, email, user_id }) => (
            <>
              <span className="font-medium">{name ?? email}</span>{" "}
              {user_id === me ? <Badge tone="info">You</Badge> : null}
              {name ? <span className="text-soft block text-xs">{email}</span> : null}
            </>
          ),
        },
        {
          name: "Role",
          cell: ({ role }) => <Badge tone={isOwner(role) ? "good" : "plain"}>{roleNames[role]}</Badge>,
        },
        { name: "Joined", cell: ({ created_at }) => day(created_at) },
        actionsColumn(owner, (member: Member) => (
          <ActionsMenu of={member.email}>
            <MenuItem icon="shield" onSelect={() => onOpen({ kind: "role", member })}>
              Change role
            </MenuItem>
            <MenuItem icon="trash" danger onSelect={() => onOpen({ kind: "remove", member })}>
              Remove
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
    <section aria-label="Pending invitations" className="flex flex-col gap-3">
      <h2 className="text-sm font-semibold">Pending invitations</h2>
      <ErrorNotice error={error} />
      <Loaded query={query} what="invitations">
        {(rows) =>
          rows.length === 0 ? (
            <div className="panel">
              <Empty icon="people" title="No pending invitations">
                {owner ? "Invite someone by email address; you get a link to send them." : null}
              </Empty>
            </div>
          ) : (
            <Table
              label="Pending invitations"
              rows={rows}
              rowKey={({ id }) => id}
              columns={[
                { name: "Email", cell: ({ email }) => <span className="font-medium">{email}</span> },
                { name: "Role", cell: ({ role }) => <Badge>{roleNames[role]}</Badge> },
                { name: "Invited by", cell: ({ invited_by }) => invited_by.name ?? invited_by.email },
                { name: "Expires", cell: ({ expires_at }) => ago(expires_at) },
                actionsColumn(owner, (invitation: Invitation) => (
                  <ActionsMenu of={invitation.email}>
                    <MenuItem icon="turn" onSelect={() => resend.mutate(invitation)}>
                      New link
                    </MenuItem>
                    <MenuItem icon="trash" danger onSelect={() => revoke.mutate(invitation)}>
                      Revoke
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
    <FormDialog title="Invite someone" submit="Invite" write={write} onClose={onClose}>
      <TextField
        label="Email"
        type="email"
        required
        autoFocus
        value={email}
        onChange={(event) => setEmail(event.target.value)}
      />
      <SelectField
        label="Role"
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
      title={`Role of ${member.name ?? member.email}`}
      submit="Save"
      write={write}
      onClose={onClose}
    >
      <SelectField
        label="Role"
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
      title={`Remove ${member.name ?? member.email}?`}
      submit="Remove"
      act={async () => await api.removeMember({ params: { org_id, user_id: member.user_id } })}
      refreshes={[["members", org_id]]}
      onClose={onClose}
    >
      They lose access at once, and the keys they own in this organization are deleted.
    </ConfirmDialog>
  )
}
