/** Whether the content of a request may still be stored: that happens after its record is written. */
import type { ContentSettings } from "../../../src/contract/content.ts"
import type { SequenceDetail } from "../../../src/contract/sequences.ts"

/** After the end of the request; the clocks of the browser and the server may differ by as much. */
export const contentFollowsMsMax = 60_000

type Ended = Pick<SequenceDetail, "content" | "result" | "timestamp" | "seq_duration_ms">

/** Only of a request that was answered. */
export function contentMayFollow(
  { content, result, timestamp, seq_duration_ms }: Ended,
  nowMs: number,
): boolean {
  const sinceEndMs = Math.abs(nowMs - (timestamp + seq_duration_ms))
  return content === "none" && result === "success" && sinceEndMs < contentFollowsMsMax
}

/** By the setting of its key, else of the organization. */
export function isContentKept(
  sequence: Pick<SequenceDetail, "api_key_id">,
  settings: Pick<ContentSettings, "keep" | "sample_rate" | "keys" | "available">,
): boolean {
  const { keep, sample_rate } =
    settings.keys.find(({ api_key_id }) => api_key_id === sequence.api_key_id) ?? settings
  return settings.available && keep !== "nothing" && sample_rate > 0
}
