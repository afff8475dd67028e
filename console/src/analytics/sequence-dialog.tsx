/** One request, in full. */
import { useQuery } from "@tanstack/react-query"
import type { ReactNode } from "react"
import type { Sequence } from "../../../src/contract/analytics.ts"
import { api } from "../api.ts"
import { Dialog } from "../parts/dialog.tsx"
import { count, milliseconds, moment } from "../parts/format.ts"
import { Badge, Loaded } from "../parts/page.tsx"
import { useOrganization } from "../session.ts"

export function SequenceDialog({ id, onClose }: { id: string; onClose: () => void }): ReactNode {
  const { id: org_id } = useOrganization()
  const query = useQuery({
    queryKey: ["sequence", org_id, id],
    queryFn: async () => await api.getAnalyticsSequence({ params: { org_id, seq_id: id } }),
  })
  return (
    <Dialog title={id} onClose={onClose} wide>
      <Loaded query={query} what="the sequence">
        {({ sequence }) => <SequenceFacts sequence={sequence} />}
      </Loaded>
    </Dialog>
  )
}

function SequenceFacts({ sequence }: { sequence: Sequence }): ReactNode {
  const facts: [string, ReactNode][] = [
    ["Began", moment(sequence.timestamp)],
    [
      "Result",
      <Badge key="result" tone={sequence.result === "success" ? "good" : "bad"}>
        {sequence.result}
      </Badge>,
    ],
    ["Model", sequence.model],
    ["Endpoint", sequence.call_source],
    ["Input tokens", count(sequence.input_tokens)],
    ["Cached tokens", count(sequence.cached_input_tokens)],
    ["Output tokens", count(sequence.output_tokens)],
    ["First byte after", milliseconds(sequence.gateway_latency_ms)],
    ["Took", milliseconds(sequence.seq_duration_ms)],
    ["Stop reason", sequence.stop_reason],
    ["Error", sequence.error_code ? `${sequence.error_code}: ${sequence.error_message ?? ""}` : null],
    ["API key", sequence.api_key_id],
    ["Request id", sequence.request_id],
    ["Address", sequence.client_ip],
    ["Client", sequence.client_ua],
    ["Tools called", sequence.tool_calls.join(", ")],
  ]
  return (
    <dl className="number grid gap-x-6 gap-y-2 text-sm sm:grid-cols-2">
      {facts
        .filter(([, value]) => value !== null && value !== "")
        .map(([name, value]) => (
          <div key={name} className="min-w-0">
            <dt className="label">{name}</dt>
            <dd className="wrap-anywhere">{value}</dd>
          </div>
        ))}
    </dl>
  )
}
