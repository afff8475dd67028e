/** Objects of the wire that have a name in the OpenAPI document. */
import { z } from "zod"

export const namedObject = <Shape extends z.core.$ZodLooseShape>(id: string, shape: Shape) =>
  z.object(shape).meta({ id })

/** A field that it does not know is refused. */
export const namedStrictObject = <Shape extends z.core.$ZodLooseShape>(id: string, shape: Shape) =>
  z.strictObject(shape).meta({ id })
