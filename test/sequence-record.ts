/** A record of the journal for tests: a successful decision, with what the test cares about replaced. */
import type { SequenceRecord } from "../src/store/journal/record.ts"

export function sequenceRecord(
  given: Partial<SequenceRecord> & Pick<SequenceRecord, "seq_id">,
): SequenceRecord {
  return {
    timestamp: Date.UTC(2026, 0, 1),
    organization_id: "org_1",
    billing_account_id: "ba_1",
    model: "umpire-decide",
    call_source: "decisions",
    inference_type: "generation",
    result: "success",
    input_tokens: 100,
    cached_input_tokens: 0,
    output_tokens: 0,
    execution_ms: 5,
    gateway_latency_ms: 6,
    seq_duration_ms: 7,
    tool_calls: [],
    api_key_id: "key_1",
    client_ip: "127.0.0.1",
    client_ua: "test",
    error_code: null,
    error_message: null,
    request_id: "req_1",
    stop_reason: null,
    region: "local",
    cost_ticks: "20000",
    ...given,
  }
}
