/** Where the installation keeps its records. */
import { z } from "zod"
import { secret } from "../config-models.ts"
import { whole } from "./values.ts"

export const DatabaseConfig = z.strictObject({
  url: secret("PostgreSQL address; without it an embedded database in data_dir is used."),
  pool_max: whole(1, 500).default(10).describe("Most connections to PostgreSQL."),
})
