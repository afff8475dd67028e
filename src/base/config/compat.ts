/** Departures from the contract for older clients. */
import { z } from "zod"
import { flag } from "./values.ts"

export const CompatConfig = z.strictObject({
  systemone_null_descriptions: flag()
    .default(false)
    .describe("Accept null instructions and criteria on /v1/systemone."),
})
