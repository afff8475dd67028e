/** Opens the engine of a place, whose directory is there. Engines are loaded where they are used: no machine has all of them. */
import { join } from "node:path"
import type { EventEngine } from "./engine.ts"
import type { Place } from "./protocol.ts"

export async function openEngine(place: Place): Promise<EventEngine> {
  switch (place.engine) {
    case "clickhouse": {
      const { openClickhouse } = await import("./clickhouse-engine.ts")
      return await openClickhouse(place.url)
    }
    case "chdb": {
      const { openChdb } = await import("./chdb-engine.ts")
      return await openChdb(join(place.directory, "chdb"))
    }
    case "duckdb": {
      const { openDuckdb } = await import("./duckdb-engine.ts")
      return await openDuckdb(join(place.directory, "events.duckdb"))
    }
    default:
      return place satisfies never
  }
}
