/** Leads to one request: by its id, or by what this browser sent lately. */
import { useNavigate } from "@tanstack/react-router"
import { type ReactNode, useState } from "react"
import { Button } from "../parts/button.tsx"
import { TextField } from "../parts/field.tsx"
import { ago } from "../parts/format.ts"
import { Panel } from "../parts/page.tsx"
import { useBrowserStorage, useOrganization } from "../session.ts"
import { recentSequences } from "./recent.ts"
import { SequenceLink } from "./sequence-link.tsx"

const shownMax = 8

export function FindSequence(): ReactNode {
  const { id: orgId } = useOrganization()
  const storage = useBrowserStorage()
  const navigate = useNavigate()
  const [text, setText] = useState("")
  const [recent] = useState(() => recentSequences(storage).slice(0, shownMax))
  const seqId = text.trim()
  return (
    <Panel title="Find one request">
      <form
        className="flex items-end gap-2"
        onSubmit={(event) => {
          event.preventDefault()
          if (seqId) void navigate({ to: "/o/$orgId/sequences/$seqId", params: { orgId, seqId } })
        }}
      >
        <div className="min-w-0 flex-1">
          <TextField
            label="Sequence id"
            placeholder="seq_…"
            value={text}
            onChange={(event) => setText(event.target.value)}
          />
        </div>
        <Button type="submit" icon="search" aria-label="Find the sequence" />
      </form>
      {recent.length > 0 ? (
        <>
          <h3 className="label mt-4 mb-1">Sent from this browser</h3>
          <ul aria-label="Sent from this browser" className="flex flex-col gap-1 text-sm">
            {recent.map(({ id, at, about }) => (
              <li key={id} className="flex items-baseline gap-3">
                <span className="min-w-0 flex-1 truncate">
                  <SequenceLink id={id}>{about || id}</SequenceLink>
                </span>
                <time dateTime={new Date(at).toISOString()} className="text-soft shrink-0 text-xs">
                  {ago(at)}
                </time>
              </li>
            ))}
          </ul>
        </>
      ) : (
        <p className="text-soft mt-3 text-xs">
          Every answer names its sequence in the header <code className="font-mono">x-umpire-sequence</code>.
        </p>
      )}
    </Panel>
  )
}
