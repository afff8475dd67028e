/** Who gets which answer: inference, virtual models, and what a service tells of itself. */
import { type Places, type Request, type Row, administered, inference, open, read } from "./row.ts"

const inferenceRequest =
  (path: string, body?: unknown) =>
  ({ org }: Places): Request => ({
    path,
    ...(body === undefined ? {} : { body }),
    headers: { "x-umpire-organization": org },
  })

const message = { role: "user", content: "Hello" }

export const gateway: readonly Row[] = [
  { endpoint: "POST /v1/decisions", ...inference, request: inferenceRequest("/v1/decisions", {}) },
  { endpoint: "POST /v1/systemone", ...inference, request: inferenceRequest("/v1/systemone", {}) },
  {
    endpoint: "POST /v1/chat/completions",
    ...inference,
    request: inferenceRequest("/v1/chat/completions", { model: "open", messages: [message] }),
  },
  {
    endpoint: "POST /v1/responses",
    ...inference,
    request: inferenceRequest("/v1/responses", { model: "open", input: "Hello" }),
  },
  { endpoint: "GET /v1/responses", ...inference, request: inferenceRequest("/v1/responses") },
  ...["GET", "DELETE"].map((method) => ({
    endpoint: `${method} /v1/responses/{response_id}`,
    ...inference,
    request: inferenceRequest("/v1/responses/resp_1"),
  })),
  {
    endpoint: "POST /v1/responses/{response_id}/cancel",
    ...inference,
    request: inferenceRequest("/v1/responses/resp_1/cancel"),
  },
  {
    endpoint: "GET /v1/responses/{response_id}/input_items",
    ...inference,
    request: inferenceRequest("/v1/responses/resp_1/input_items"),
  },
  {
    endpoint: "POST /v1/embeddings",
    ...inference,
    request: inferenceRequest("/v1/embeddings", { model: "open", input: "Hello" }),
  },
  ...["/v1/responses/input_tokens", "/v1/responses/compact", "/v1/rerank", "/v1/moderations"].map((path) => ({
    endpoint: `POST ${path}`,
    ...inference,
    request: inferenceRequest(path, {}),
  })),
  ...["/v1/messages", "/v1/messages/count_tokens"].map((path) => ({
    endpoint: `POST ${path}`,
    ...inference,
    request: inferenceRequest(path, {}),
  })),
  {
    endpoint: "POST /mcp",
    ...inference,
    request: inferenceRequest("/mcp", { jsonrpc: "2.0", id: 1, method: "ping" }),
  },
  {
    endpoint: "POST /v1/files",
    ...inference,
    request: ({ org }) => ({
      path: "/v1/files",
      body: "--x--\r\n",
      headers: { "x-umpire-organization": org, "content-type": "multipart/form-data; boundary=x" },
    }),
  },
  { endpoint: "GET /v1/files", ...inference, request: inferenceRequest("/v1/files") },
  ...["GET", "DELETE"].map((method) => ({
    endpoint: `${method} /v1/files/{file_id}`,
    ...inference,
    request: inferenceRequest("/v1/files/file_1"),
  })),
  {
    endpoint: "GET /v1/files/{file_id}/content",
    ...inference,
    request: inferenceRequest("/v1/files/file_1/content"),
  },
  {
    endpoint: "POST /v1/batches",
    ...inference,
    request: inferenceRequest("/v1/batches", {
      input_file_id: "file_1",
      endpoint: "/v1/decisions",
      completion_window: "24h",
    }),
  },
  { endpoint: "GET /v1/batches", ...inference, request: inferenceRequest("/v1/batches") },
  {
    endpoint: "GET /v1/batches/{batch_id}",
    ...inference,
    request: inferenceRequest("/v1/batches/batch_1"),
  },
  {
    endpoint: "POST /v1/batches/{batch_id}/cancel",
    ...inference,
    request: inferenceRequest("/v1/batches/batch_1/cancel"),
  },
  { endpoint: "GET /v1/models", ...inference, request: inferenceRequest("/v1/models") },
  { endpoint: "GET /v1/models/{model}", ...inference, request: inferenceRequest("/v1/models/open") },
]

export const service: readonly Row[] = [
  "/healthz",
  "/readyz",
  "/metrics",
  "/openapi.json",
  "/schemas/question-set.json",
].map((path) => ({
  endpoint: `GET ${path}`,
  ...open("200"),
  ...(path === "/metrics" ? { unknown: "200" } : {}),
  request: () => ({ path }),
}))

const virtualModelAt =
  (body?: unknown) =>
  async (places: Places): Promise<Request> => ({
    path: `/v1/organizations/${places.org}/models/${await places.virtualModel()}`,
    ...(body === undefined ? {} : { body }),
  })

export const virtualModels: readonly Row[] = [
  {
    endpoint: "POST /v1/organizations/{org_id}/models",
    ...administered("200"),
    request: async (places) => {
      // Whatever is there goes first, so that the name is free.
      await places.virtualModel()
      return { path: `/v1/organizations/${places.org}/models`, body: { name: "another", alias: "open" } }
    },
  },
  {
    endpoint: "GET /v1/organizations/{org_id}/models/{model_id}",
    ...read,
    request: virtualModelAt(),
  },
  {
    endpoint: "PATCH /v1/organizations/{org_id}/models/{model_id}",
    ...administered("200"),
    request: virtualModelAt({ description: "Fast" }),
  },
  {
    endpoint: "DELETE /v1/organizations/{org_id}/models/{model_id}",
    ...administered("204"),
    request: virtualModelAt(),
  },
]
