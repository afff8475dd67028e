/** What `umpire models check` found of a chat model: how often it is right, and how sure it may be of each kind of question. */
import { z } from "zod"

const Calibration = z.object({ temperature: z.number().positive(), bias: z.number() })
export const Calibrations = z.object({ predicate: Calibration, choice: Calibration, score: Calibration })
export type Calibrations = z.infer<typeof Calibrations>

export const decisionMethods = ["native", "tokens", "logprobs", "schema", "text"] as const

export const ModelCheck = z.object({
  method: z.enum(decisionMethods),
  rows: z.int(),
  accuracy: z.number(),
  calibrations: Calibrations,
  checked_at: z.string(),
})
export type ModelCheck = z.infer<typeof ModelCheck>

/** Servers of others that a model can be connected to. */
export const remoteDialects = [
  "openai",
  "azure",
  "anthropic",
  "vllm",
  "sglang",
  "llama-server",
  "ollama",
  "systemone",
] as const

const openaiHost = "api.openai.com"

/** Where each usually is; null: it has to be said. */
export const usualAddresses: Readonly<Record<(typeof remoteDialects)[number], string | null>> = {
  openai: `https://${openaiHost}/v1`,
  azure: null,
  anthropic: "https://api.anthropic.com/v1",
  vllm: "http://127.0.0.1:8000/v1",
  sglang: "http://127.0.0.1:30000/v1",
  "llama-server": "http://127.0.0.1:8080/v1",
  ollama: "http://127.0.0.1:11434/v1",
  systemone: null,
}

/** Whether who runs the server there asks for money, as far as is known: where no price is told, no budget would hold. */
export function isPaidFor(dialect: (typeof remoteDialects)[number], url: string): boolean {
  switch (dialect) {
    case "azure":
    case "anthropic":
      return true
    case "openai":
      return URL.canParse(url) && new URL(url).host === openaiHost
    default:
      return false
  }
}
