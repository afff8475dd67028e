/** Traces for OpenTelemetry. */
import { z } from "zod"
import { flag } from "./values.ts"

export const TelemetryConfig = z.strictObject({
  otlp_endpoint: z
    .url()
    .optional()
    .describe(
      "Where traces go by OTLP/HTTP, as http://collector:4318; defaults to OTEL_EXPORTER_OTLP_ENDPOINT, without which there are none.",
    ),
  sample_ratio: z.coerce
    .number()
    .min(0)
    .max(1)
    .default(1)
    .describe(
      "Share of the traces that are kept, of those that begin here and of those that a caller's traceparent samples.",
    ),
  content: flag()
    .default(false)
    .describe(
      "Put evidence, questions, messages and answers into spans, as they were sent; whoever reads the traces then reads them.",
    ),
})
