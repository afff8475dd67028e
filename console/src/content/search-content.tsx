/** Finds kept requests by what stands in them, and leads to their records. */
import { Link } from "@tanstack/react-router"
import { type ReactNode, useState } from "react"
import type { FoundContent } from "../../../src/contract/content.ts"
import { api, useWrite } from "../api.ts"
import { Button } from "../parts/button.tsx"
import { Dialog } from "../parts/dialog.tsx"
import { TextField } from "../parts/field.tsx"
import { Form } from "../parts/form.tsx"
import { moment } from "../parts/format.ts"
import { useOrganization } from "../session.ts"
import { t } from "../i18n/translate.ts"

interface Found {
  readonly text: string
  readonly rows: readonly FoundContent[]
  /** Null: everything that is kept was read. */
  readonly next: string | null
}

export function SearchContent({ onClose }: { onClose: () => void }): ReactNode {
  const [text, setText] = useState("")
  const [found, setFound] = useState<Found | null>(null)
  const { id: org_id } = useOrganization()
  const search = useWrite(
    async (before: Found | undefined) => {
      const asked = before?.text ?? text.trim()
      const page = await api.searchContent({
        params: { org_id },
        body: { text: asked, ...(before?.next ? { cursor: before.next } : {}) },
      })
      return { text: asked, rows: [...(before?.rows ?? []), ...(page.data ?? [])], next: page.next_cursor }
    },
    [],
    setFound,
  )
  return (
    <Dialog title={t("Search in kept requests")} onClose={onClose} wide>
      <div className="flex flex-col gap-4">
        <Form
          write={{ ...search, mutate: () => search.mutate(undefined) }}
          ready={text.trim() !== ""}
          footer={
            <Button type="submit" kind="loud" icon="search" busy={search.isPending} className="self-start">
              {t("Search")}
            </Button>
          }
        >
          <TextField
            label={t("Text")}
            maxLength={200}
            hint={t(
              "Stands in the text, the conversation or the output. Requests of which nothing is kept are not found, and the audit log says which ones you found.",
            )}
            value={text}
            onChange={(event) => setText(event.target.value)}
          />
        </Form>
        {found ? (
          <Results
            found={found}
            busy={search.isPending}
            onMore={() => search.mutate(found)}
            onOpen={onClose}
          />
        ) : null}
      </div>
    </Dialog>
  )
}

function Results({
  found: { text, rows, next },
  busy,
  onMore,
  onOpen,
}: {
  found: Found
  busy: boolean
  onMore: () => void
  onOpen: () => void
}): ReactNode {
  const { id: orgId } = useOrganization()
  return (
    <>
      <p role="status" className="text-soft text-sm">
        {foundSentence(text, rows.length, next !== null)}
      </p>
      <ul aria-label={t("Found requests")} className="divide-line flex flex-col divide-y">
        {rows.map(({ seq_id, at, endpoint, model, excerpt }) => (
          <li key={seq_id} className="flex flex-col gap-1 py-2.5">
            <span className="text-soft flex flex-wrap gap-x-3 text-xs">
              <Link
                to="/o/$orgId/requests/$seqId"
                params={{ orgId, seqId: seq_id }}
                onClick={onOpen}
                className="text-accent font-medium underline"
              >
                {moment(at)}
              </Link>
              <span>{endpoint}</span>
              <span className="font-mono">{model}</span>
            </span>
            <span dir="auto" className="text-sm wrap-anywhere">
              {excerpt}
            </span>
          </li>
        ))}
      </ul>
      {next === null ? null : (
        <Button className="self-center" busy={busy} onClick={onMore}>
          {t("Search on")}
        </Button>
      )}
    </>
  )
}

function foundSentence(text: string, rows: number, isMore: boolean): string {
  if (rows === 0)
    return isMore
      ? t("No kept request has “{text}” so far: there are more kept requests than one search reads.", {
          text,
        })
      : t("No kept request has “{text}”.", { text })
  return isMore
    ? t("Found: {rows} so far: there are more kept requests than one search reads.", { rows })
    : t("Found: {rows}.", { rows })
}
