/** The record of one sequence in the journal: the contract's Sequence with whose it is and what it cost. */
import type { BudgetPeriod } from "../../contract/access.ts"

/** Wire names, so that analytics stores and serves the fields as they are. */
export interface SequenceRecord {
  readonly seq_id: string
  /** Unix milliseconds at which the request began; its UTC day and month are the ones it is charged to. */
  readonly timestamp: number
  readonly organization_id: string
  /** Who pays; null when the request was refused before anything was reserved. */
  readonly billing_account_id: string | null
  /** What the request was admitted under, and so what it is charged to; null as above, and in records of version 0.1. */
  readonly billing_mode?: "prepaid" | "postpaid" | null
  readonly model: string
  readonly call_source: string
  readonly inference_type: "generation" | "embedding"
  readonly result: "success" | "error" | "cancelled"
  /** Without cached ones. */
  readonly input_tokens: number
  readonly cached_input_tokens: number
  readonly output_tokens: number
  readonly execution_ms: number
  readonly gateway_latency_ms: number
  readonly seq_duration_ms: number
  readonly tool_calls: readonly string[]
  readonly api_key_id: string | null
  readonly client_ip: string | null
  readonly client_ua: string | null
  readonly error_code: string | null
  readonly error_message: string | null
  readonly request_id: string | null
  readonly stop_reason: string | null
  readonly region: string | null
  /** In 1e-10 USD, as decimal text: JSON has no 64-bit integers. */
  readonly cost_ticks: string
  // What follows is missing in records of version 0.1. None of it may hold evidence, texts of options or answers.
  readonly principal_kind?: "key" | "user" | "workload" | null
  /** The key, the user of a session, or the identity provider. */
  readonly principal_id?: string | null
  readonly question_set_id?: string | null
  readonly question_set?: string | null
  readonly question_set_version?: number | null
  /** Null where none could be asked. */
  readonly questions?: number | null
  readonly abstained?: number | null
  readonly tags?: Readonly<Record<string, string>>
  readonly attempts?: readonly RecordedAttempt[]
  /** Null when the request did not come so far. */
  readonly queue_ms?: number | null
  readonly route_ms?: number | null
  readonly engine_ms?: number | null
  /** The budgets of the key that its cost was held under. */
  readonly budgets?: readonly BudgetPeriod[] | undefined
  /** By the ids of its tags' budgets: those that its cost was held under; it counts as spent for all of them. */
  readonly tag_budgets?: Readonly<Record<string, readonly BudgetPeriod[]>> | undefined
  /** The name that was asked, where it is a virtual model's; `model` is then the one that answered. */
  readonly virtual_model?: string | null | undefined
  /** Of a virtual model, in order; tokens and cost above are their sums. */
  readonly stages?: readonly RecordedStage[] | undefined
  /** Of its text, as detection found it. */
  readonly language?: string | null | undefined
  /** It may stand in the journal again, under the same id and time: of a line of a batch, or under an Idempotency-Key. */
  readonly may_repeat?: true | undefined
}

/** One model's part in a request for a virtual model. */
export interface RecordedStage {
  readonly model: string
  /** `success`, or the code of the error. */
  readonly result: string
  /** Null where the model never began. */
  readonly region: string | null
  /** Of decisions: how many it was asked. */
  readonly questions: number | null
  readonly input_tokens: number
  readonly cached_input_tokens: number
  readonly output_tokens: number
  readonly ms: number
  readonly cost_ticks: string
}

/** One try at a worker. */
export interface RecordedAttempt {
  readonly region: string
  readonly result: string
  readonly ms: number
}
