/** Structured logs on standard error: one JSON object a line, with every secret-bearing field cut out. */
import { activeSpan } from "./telemetry.ts"
import pino, { type DestinationStream, type Logger } from "pino"

export type Log = Logger

export const logLevels = ["fatal", "error", "warn", "info", "debug", "trace", "silent"] as const
type LogLevel = (typeof logLevels)[number]

/** Fields that may carry a secret wherever they appear; cut even if a caller logs a whole object by mistake. */
const secretFields = [
  "authorization",
  "cookie",
  "password",
  "secret",
  "token",
  "accept_token",
  "access_token",
]
const redactPaths = secretFields.flatMap((field) => [field, `*.${field}`, `*.*.${field}`])

/** So that a line is found from its trace, and a trace from its line. */
function traceOfWork(): object {
  const span = activeSpan()
  return span ? { trace_id: span.traceId, span_id: span.spanId } : {}
}

export function createLog(level: LogLevel, destination: DestinationStream = pino.destination(2)): Log {
  return pino(
    {
      level,
      base: null,
      mixin: traceOfWork,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      redact: { paths: redactPaths, censor: "[redacted]" },
    },
    destination,
  )
}

export const silentLog: Log = createLog("silent")
