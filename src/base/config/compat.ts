/** Departures from the contract for other clients. */
import { z } from "zod"
import { flag } from "./values.ts"

export const CompatConfig = z.strictObject({
  systemone_null_descriptions: flag()
    .default(false)
    .describe("Accept null instructions and criteria on /v1/systemone."),
  decisions_ga: flag()
    .default(false)
    .describe(
      "Accept on /v1/decisions what OpenAI's own endpoint accepts: messages of every role, tool calls and outputs, `input_json`, instructions as parts, prompt cache options.",
    ),
})
