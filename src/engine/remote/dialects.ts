/** How kinds of servers differ, as data; everything else about them is OpenAI's protocol. */

const dialectNames = ["openai", "vllm", "sglang", "llama-server", "ollama", "systemone"] as const
export type DialectName = (typeof dialectNames)[number]

type Json = Record<string, unknown>

export interface TokenizeCall {
  readonly path: string
  body(text: string, model: string): Json
  readonly field: string
}

/** One token after a prompt, with the log-probabilities of tokens by id. */
export interface ScoreCall {
  readonly path: string
  body(prompt: readonly number[], model: string, wanted: readonly number[], top: number): Json
  /** Pairs of token id and log-probability, or null when the answer has none. */
  read(answer: unknown): readonly (readonly [id: number, logprob: number])[] | null
  /** How many alternatives to ask for, then how many more when one was missing; the server's limit is the last. */
  readonly tops: readonly number[]
}

export interface Dialect {
  readonly health: string
  /** What limits the answer's length. */
  readonly lengthField: "max_tokens" | "max_completion_tokens"
  /** Where reasoning stands in a delta; the first that is there counts. */
  readonly reasoningFields: readonly string[]
  /** Asks a reasoning model not to think. */
  readonly noThinking: Json
  /** How a call of one function is demanded: by its name, or by `required` where it is the only one that is offered. */
  readonly namedTool: "named" | "alone"
  /** Asks for JSON of no schema. */
  readonly jsonObject: Json
  readonly tokenize: TokenizeCall | null
  /** Writes a conversation as text; null where only the model file knows the template. */
  readonly template: { readonly path: string; body(marker: string): Json; readonly field: string } | null
  readonly score: ScoreCall | null
}

const common = {
  health: "/v1/models",
  lengthField: "max_tokens",
  reasoningFields: ["reasoning_content", "reasoning"],
  noThinking: {},
  namedTool: "named",
  jsonObject: { type: "json_object" },
  tokenize: null,
  template: null,
  score: null,
} as const satisfies Dialect

const templateOff = { chat_template_kwargs: { enable_thinking: false } }

/** vLLM's own, which SGLang has too. */
const tokenizeTokens: Dialect["tokenize"] = {
  path: "/tokenize",
  body: (text, model) => ({ model, prompt: text, add_special_tokens: false }),
  field: "tokens",
}

export const dialects: Readonly<Record<DialectName, Dialect>> = {
  openai: { ...common, lengthField: "max_completion_tokens" },
  ollama: common,
  vllm: {
    ...common,
    health: "/health",
    noThinking: templateOff,
    tokenize: tokenizeTokens,
    score: {
      path: "/v1/completions",
      body: (prompt, model, wanted, top) => ({
        model,
        prompt,
        max_tokens: 1,
        temperature: 0,
        logprobs: top,
        logprob_token_ids: wanted,
        return_tokens_as_token_ids: true,
      }),
      read: readVllm,
      // The server's --max-logprobs is 20 unless raised.
      tops: [5, 20],
    },
  },
  sglang: {
    ...common,
    health: "/health",
    noThinking: templateOff,
    tokenize: tokenizeTokens,
    score: {
      path: "/generate",
      body: (prompt, _model, wanted) => ({
        input_ids: prompt,
        sampling_params: { max_new_tokens: 1, temperature: 0 },
        return_logprob: true,
        token_ids_logprob: wanted,
      }),
      read: readSglang,
      tops: [0],
    },
  },
  "llama-server": {
    ...common,
    health: "/health",
    noThinking: templateOff,
    // It takes a name for `auto`, and any value for JSON.
    namedTool: "alone",
    jsonObject: { type: "json_object", schema: { type: "object" } },
    tokenize: {
      path: "/tokenize",
      body: (text) => ({ content: text, add_special: false, parse_special: false }),
      field: "tokens",
    },
    template: {
      path: "/apply-template",
      body: (marker) => ({ messages: [{ role: "user", content: marker }], ...templateOff }),
      field: "prompt",
    },
    score: {
      path: "/completion",
      body: (prompt, _model, _wanted, top) => ({
        prompt,
        n_predict: 1,
        n_probs: top,
        temperature: 0,
        cache_prompt: true,
      }),
      read: readLlamaServer,
      tops: [40, 400, 4000],
    },
  },
  systemone: common,
}

const isObject = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value)
const at = (value: unknown, ...path: readonly (string | number)[]): unknown =>
  path.reduce<unknown>((found, step) => (found as Json | undefined)?.[step], value)

function readVllm(answer: unknown): [number, number][] | null {
  const top = at(answer, "choices", 0, "logprobs", "top_logprobs", 0)
  if (!isObject(top)) return null
  return Object.entries(top).flatMap(([token, logprob]): [number, number][] => {
    const id = /^token_id:(\d+)$/.exec(token)?.[1]
    return id !== undefined && typeof logprob === "number" ? [[Number(id), logprob]] : []
  })
}

function readSglang(answer: unknown): [number, number][] | null {
  const rows = at(answer, "meta_info", "output_token_ids_logprobs", 0)
  if (!Array.isArray(rows)) return null
  return rows.flatMap((row: unknown): [number, number][] => {
    const [logprob, id]: unknown[] = Array.isArray(row) ? row : []
    return typeof logprob === "number" && typeof id === "number" ? [[id, logprob]] : []
  })
}

function readLlamaServer(answer: unknown): [number, number][] | null {
  const rows = at(answer, "completion_probabilities", 0, "top_logprobs")
  if (!Array.isArray(rows)) return null
  return rows.flatMap((row: unknown): [number, number][] => {
    const { id, logprob } = isObject(row) ? row : {}
    return typeof logprob === "number" && typeof id === "number" ? [[id, logprob]] : []
  })
}
