/** What a request record says that a request was made by: the endpoint, or the job. */
export const callSources = [
  "decisions",
  "systemone",
  "responses",
  "responses_ws",
  "compact",
  "chat_completions",
  "embeddings",
  "messages",
  "count_tokens",
  "rerank",
  "moderations",
  "guardrail",
  "teach",
  "check",
  "shadow",
  "redaction",
] as const
export type CallSource = (typeof callSources)[number]
