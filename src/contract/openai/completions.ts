/** The wire of POST /v1/completions, which older clients send: a prompt in, its answer out. */
import { z } from "zod"
import { bodyText } from "../check.ts"
import { namedObject } from "../endpoint.ts"
import { boundedArray, selectedUnion } from "./bounded.ts"
import { ChatRequest, ChatUsage } from "./chat.ts"
import { harmless, ignored, modelName, optional, refused, sampling } from "./parameters.ts"

const { n, stop, seed, logit_bias, stream, stream_options } = ChatRequest.shape
const prompt = bodyText().min(1)
const prompts = boundedArray(prompt, { min: 1, max: 1 })
const logprobsMax = 5

export const CompletionRequest = z
  .strictObject({
    model: modelName,
    prompt: selectedUnion(
      [prompt, prompts],
      (value) => (Array.isArray(value) ? prompts : prompt),
      "one text, which is not empty; send each prompt in a request of its own",
    ).meta({
      description: "What the user says: it is answered in the model's chat template, not continued.",
    }),
    max_tokens: optional(
      z.int().min(1),
      "Most tokens to write; without it as many as the model has room for.",
    ),
    n,
    stop,
    seed,
    ...sampling,
    logit_bias,
    logprobs: optional(z.int().min(0).max(logprobsMax), "Alternatives to report for each token, at most 5."),
    stream,
    stream_options,
    ...harmless,
    metadata: ignored("tags come in the header x-umpire-tags"),
    best_of: refused("n writes several answers", 1),
    echo: refused("the prompt is not sent back", false),
    suffix: refused("nothing is inserted", ""),
  })
  .meta({ id: "CompletionRequest", description: "A prompt and how to answer it." })
export type CompletionRequest = z.infer<typeof CompletionRequest>

const CompletionLogprobs = z.object({
  tokens: z.array(z.string()),
  token_logprobs: z.array(z.number()),
  top_logprobs: z.array(z.record(z.string(), z.number())),
  text_offset: z.array(z.int().min(0)),
})

/** Also of each chunk of a stream. */
export const Completion = namedObject("Completion", {
  id: z.string(),
  object: z.literal("text_completion"),
  created: z.int(),
  model: z.string(),
  choices: z.array(
    z.object({
      index: z.int().min(0),
      text: z.string(),
      logprobs: CompletionLogprobs.nullable(),
      finish_reason: z.enum(["stop", "length", "content_filter"]).nullable(),
    }),
  ),
  usage: ChatUsage.nullable().optional(),
  system_fingerprint: z.string().nullable(),
})
export type Completion = z.infer<typeof Completion>
