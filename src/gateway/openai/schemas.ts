/** What the gateway does about the schemas of a request: bounds before any work, and a header for what is left open. */
import { checkBounds } from "@umpire/schema-grammar"
import type { GenerateWork, GenerationSizes } from "../../engine/engine.ts"
import { refusingSchemas } from "../../engine/generate/refused-schema.ts"

/** JSON pointers of the keywords that the answer is not held to, separated by commas; absent when there are none. */
export const notEnforcedHeader = "x-umpire-schema-not-enforced"

const POINTERS_MAX = 32
const POINTER_CHARACTERS_MAX = 200

/** Throws Fault `invalid_request` for schemas that are too large. */
export function checkSchemas({ format, tools }: GenerateWork): void {
  if (format.kind === "json_schema") check(format.schema, "response_format")
  for (const { name, parameters } of tools)
    if (parameters !== null) check(parameters, `tools.${name}.parameters`)
}

const check = (schema: unknown, param: string): void => refusingSchemas(param, () => checkBounds(schema))

/** Null when the answer is held to everything. More pointers than fit a header are cut off with dots. */
export function notEnforcedValue({ notEnforced }: GenerationSizes): string | null {
  if (!notEnforced || notEnforced.length === 0) return null
  const shown = notEnforced
    .slice(0, POINTERS_MAX)
    .map((pointer) =>
      encodeURI(pointer.toWellFormed()).replaceAll(",", "%2C").slice(0, POINTER_CHARACTERS_MAX),
    )
  return [...shown, ...(notEnforced.length > POINTERS_MAX ? ["..."] : [])].join(", ")
}
