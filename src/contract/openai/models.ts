/** The wire of GET /v1/models. */
import { z } from "zod"

export const ModelObject = z
  .object({ id: z.string(), object: z.literal("model"), created: z.int(), owned_by: z.string() })
  .meta({ id: "Model" })
export type ModelObject = z.infer<typeof ModelObject>

export const ModelList = z
  .object({
    object: z.literal("list"),
    data: z.array(ModelObject),
    models: z.array(
      z.object({ name: z.string(), description: z.string(), release_date: z.string().nullable() }),
    ),
  })
  .meta({ id: "ModelList" })
export type ModelList = z.infer<typeof ModelList>
