/** What the schema compiler refuses, as a refusal of the request's parameter. */
import { SchemaError } from "@umpire/schema-grammar"
import { Fault } from "../../contract/errors.ts"

/** Throws Fault `invalid_request` where the work throws a `SchemaError`. */
export function refusingSchemas<Result>(param: string, work: () => Result): Result {
  try {
    return work()
  } catch (error) {
    if (error instanceof SchemaError) throw new Fault("invalid_request", error.message, { param })
    throw error
  }
}
