/** Who gets which answer: inference, virtual models, and what a service tells of itself. */
import { connectedModel } from "../connected-model.ts"
import {
  type Places,
  type Request,
  type Row,
  administered,
  inference,
  noWorkload,
  open,
  read,
} from "./row.ts"

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
  ...[
    "/v1/completions",
    "/v1/responses/input_tokens",
    "/v1/responses/compact",
    "/v1/rerank",
    "/v2/rerank",
    "/v1/moderations",
    "/v1/messages",
    "/v1/messages/count_tokens",
  ].map((path) => ({
    endpoint: `POST ${path}`,
    ...inference,
    request: inferenceRequest(path, {}),
  })),
  ...(
    [
      ["GET", "/v1/chat/completions"],
      ["GET", "/v1/chat/completions/{completion_id}"],
      ["POST", "/v1/chat/completions/{completion_id}", { metadata: {} }],
      ["DELETE", "/v1/chat/completions/{completion_id}"],
      ["GET", "/v1/chat/completions/{completion_id}/messages"],
      ["POST", "/v1/conversations", {}],
      ["GET", "/v1/conversations/{conversation_id}"],
      ["POST", "/v1/conversations/{conversation_id}", { metadata: {} }],
      ["DELETE", "/v1/conversations/{conversation_id}"],
      ["GET", "/v1/conversations/{conversation_id}/items"],
      ["POST", "/v1/conversations/{conversation_id}/items", { items: [message] }],
      ["GET", "/v1/conversations/{conversation_id}/items/{item_id}"],
      ["DELETE", "/v1/conversations/{conversation_id}/items/{item_id}"],
      ["POST", "/v1/messages/batches", { requests: [{ custom_id: "a", params: {} }] }],
      ["GET", "/v1/messages/batches"],
      ["GET", "/v1/messages/batches/{message_batch_id}"],
      ["DELETE", "/v1/messages/batches/{message_batch_id}"],
      ["GET", "/v1/messages/batches/{message_batch_id}/results"],
      ["POST", "/v1/messages/batches/{message_batch_id}/cancel"],
    ] as const
  ).map(([method, path, body]) => ({
    endpoint: `${method} ${path}`,
    ...inference,
    request: inferenceRequest(path.replaceAll(/\{\w+\}/g, "x_1"), body),
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
    endpoint: "POST /v1/batches/{batch_id}",
    ...inference,
    request: inferenceRequest("/v1/batches/batch_1", { metadata: {} }),
  },
  {
    endpoint: "DELETE /v1/batches/{batch_id}",
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
    endpoint: "GET /v1/organizations/{org_id}/cascade_days",
    ...read,
    request: ({ org }) => ({ path: `/v1/organizations/${org}/cascade_days?cascade=careful` }),
  },
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

/** Of the operator's organization, whose owners alone connect models, in the console. */
const ownersInConsole = (done: string) => ({
  sessions: `${done} ${done} 403 404`,
  keys: "403 403 403 403",
  userKeys: "403 403 403",
  workloads: noWorkload,
  foreignKey: "403",
})

export const connectedModels: readonly Row[] = [
  {
    endpoint: "GET /v1/organizations/{org_id}/connected_models",
    ...ownersInConsole("200"),
    request: ({ org }) => ({ path: `/v1/organizations/${org}/connected_models` }),
  },
  {
    endpoint: "POST /v1/organizations/{org_id}/connected_models",
    ...ownersInConsole("200"),
    request: async ({ org, connectedModel: make }) => ({
      path: `/v1/organizations/${org}/connected_models`,
      // A name that is free.
      body: { ...connectedModel, sku: `free-${await make()}` },
    }),
  },
  {
    endpoint: "POST /v1/organizations/{org_id}/connected_models/{connected_model_id}/check",
    ...ownersInConsole("200"),
    request: async (places) => ({
      path: `/v1/organizations/${places.org}/connected_models/${await places.connectedModel()}/check`,
      body: {},
    }),
  },
  {
    endpoint: "DELETE /v1/organizations/{org_id}/connected_models/{connected_model_id}",
    ...ownersInConsole("204"),
    request: async (places) => ({
      path: `/v1/organizations/${places.org}/connected_models/${await places.connectedModel()}`,
    }),
  },
]
