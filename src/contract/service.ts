/** Endpoints about the process itself; open to anyone who can reach it. */
import { z } from "zod"
import { anyone } from "./endpoint-group.ts"
import { Document, endpoint } from "./endpoint.ts"

const Health = z.object({ status: z.enum(["ok", "starting", "stopping", "failing"]) }).meta({ id: "Health" })

export const getHealth = endpoint({
  method: "GET",
  path: "/healthz",
  area: "Service",
  surface: "service",
  summary: "Check health; whether the process runs",
  access: anyone,
  output: Health,
})

export const getReadiness = endpoint({
  method: "GET",
  path: "/readyz",
  area: "Service",
  surface: "service",
  summary: "Check readiness; whether requests can be served now",
  access: anyone,
  output: Health,
  errors: ["not_ready"],
})

export const getMetrics = endpoint({
  method: "GET",
  path: "/metrics",
  area: "Service",
  surface: "service",
  summary: "Read metrics for Prometheus; may need a bearer value of its own, or be on another port",
  access: { principals: [], ownBearer: true },
  output: z.instanceof(Document),
  produces: "text/plain; version=0.0.4; charset=utf-8",
  errors: ["missing_credentials", "invalid_credentials", "not_found"],
})

export const getOpenapi = endpoint({
  method: "GET",
  path: "/openapi.json",
  area: "Service",
  surface: "service",
  summary: "Read this document",
  access: anyone,
  output: z.record(z.string(), z.unknown()).meta({ description: "An OpenAPI 3.1 document." }),
})
