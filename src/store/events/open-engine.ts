/** Opens the engine of a place, whose directory is there. Each engine is loaded only where it is used. */
import { join } from "node:path"
import type { EventEngine } from "./engine.ts"
import type { Place } from "./events.ts"

export async function openEngine(place: Place): Promise<EventEngine> {
  switch (place.engine) {
    case "clickhouse": {
      const { openClickhouse } = await import("./clickhouse-engine.ts")
      return await openClickhouse(place.url)
    }
    case "duckdb": {
      const { openDuckdb } = await import("./duckdb-engine.ts")
      return await openDuckdb(join(place.directory, "events.duckdb"))
    }
    default:
      return place satisfies never
  }
}
