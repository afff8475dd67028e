import { expect, test } from "vitest"
import { loadConfig } from "../base/config.ts"
import { silentLog } from "../base/log.ts"
import { openTelemetry } from "./telemetry.ts"

const traceId = "0".repeat(31) + "1"

/** Whether a trace goes on that the caller samples, or does not. */
async function isKept(service: "umpire" | "umpire-worker", ratio: number, flags: "00" | "01") {
  // Nothing is sent to the address.
  const config = loadConfig(
    { UMPIRE_TELEMETRY_OTLP_ENDPOINT: "http://127.0.0.1:9", UMPIRE_TELEMETRY_SAMPLE_RATIO: String(ratio) },
    import.meta.dirname,
  )
  const telemetry = await openTelemetry(config, service, { log: silentLog, environment: {} })
  const traceparent = `00-${traceId}-2222222222222222-${flags}`
  const span = telemetry.tracer?.begin("a", "server", (name) => (name === "traceparent" ? traceparent : null))
  await telemetry.close()
  return span?.headers["traceparent"]?.endsWith("-01")
}

test.each([
  ["umpire", 1, "01", true],
  // A gateway's callers choose their trace ids, and anybody can be one.
  ["umpire", 0, "01", false],
  ["umpire", 1, "00", false],
  ["umpire-worker", 0, "01", true],
  ["umpire-worker", 1, "00", false],
] as const)(
  "%s with the ratio %d and the caller's flags %s: kept is %s",
  async (service, ratio, flags, kept) => {
    expect(await isKept(service, ratio, flags)).toBe(kept)
  },
)
