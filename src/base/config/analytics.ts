/** Where events are kept, and for how long. */
import { z } from "zod"
import { secret } from "../config-models.ts"
import { flag, whole } from "./values.ts"

export const AnalyticsConfig = z.strictObject({
  clickhouse_url: secret(
    "ClickHouse address, http://user:password@host:8123/database; without it events are kept in data_dir.",
  ),
  embedded: flag()
    .default(true)
    .describe("Keep events in an embedded DuckDB where no address is given; false keeps none."),
  retention_days: whole(1, 36_500).default(90).describe("How long events are kept."),
})
