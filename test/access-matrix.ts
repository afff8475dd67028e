/**
 * Who gets which answer on every endpoint. The expected statuses are written here by hand, from the contract's tables
 * of endpoints and accepted principals and the decisions about roles; nothing is derived from the endpoint table.
 */
import type { Permission, Role } from "../src/contract/access.ts"

/** What a row can name in its path and body; made anew for each case, so that one case cannot disturb another. */
export interface Places {
  readonly org: string
  readonly account: string
  /** A member of the organization who is nobody's caller. */
  readonly member: () => Promise<string>
  /** An API key with `api-admin`. */
  readonly key: () => Promise<string>
  /** An open invitation: its id and its token. */
  readonly invitation: () => Promise<{ readonly id: string; readonly token: string }>
  /** A question set with a version that has the label `stable`, an example and a frozen case. */
  readonly questionSet: () => Promise<{
    readonly id: string
    readonly example: string
    readonly case: string
    /** Of a job that waits: nothing runs jobs here. */
    readonly job: string
    readonly artefact: string
  }>
  /** A one-time link of some user. */
  readonly link: () => Promise<string>
}

interface Request {
  readonly path: string
  readonly body?: unknown
  readonly headers?: Record<string, string>
}

export interface Row {
  /** Method and path as the contract writes them. */
  readonly endpoint: string
  /** Statuses for sessions of: primary owner, owner, member, someone of another organization. */
  readonly sessions: string
  /** For keys of the organization with only: inference, api-read, api-write, api-admin. */
  readonly keys: string
  /** For keys of a primary owner, owner and member with all four permissions. */
  readonly userKeys: string
  /** For workload tokens with only: inference, api-read, api-write, api-admin. */
  readonly workloads: string
  /** For a key of another organization with all four permissions. */
  readonly foreignKey: string
  /** Without credentials; 401 unless the endpoint is open to anyone. Wrong credentials are always 401. */
  readonly nobody?: string
  readonly request: (places: Places) => Request | Promise<Request>
}

export const sessionRoles: readonly (Role | "outsider")[] = ["primary_owner", "owner", "member", "outsider"]
export const singlePermissions: readonly Permission[] = ["inference", "api-read", "api-write", "api-admin"]
export const userKeyRoles: readonly Role[] = ["primary_owner", "owner", "member"]

const noWorkload = "403 403 403 403"

/** Read with `api-read`; not for workload tokens. */
const read = {
  sessions: "200 200 200 404",
  keys: "403 200 403 403",
  userKeys: "200 200 200",
  workloads: noWorkload,
  foreignKey: "404",
}
/** Changed with `api-admin`, which member sessions do not hold; `done` is the status of success. */
const administered = (done: string) => ({
  sessions: `${done} ${done} 403 404`,
  keys: `403 403 403 ${done}`,
  userKeys: `${done} ${done} 403`,
  workloads: noWorkload,
  foreignKey: "404",
})
/** Changed with `api-write`, which member sessions hold too. */
const written = (done: string) => ({
  sessions: `${done} ${done} ${done} 404`,
  keys: `403 403 ${done} 403`,
  userKeys: `${done} ${done} ${done}`,
  workloads: noWorkload,
  foreignKey: "404",
})
/** Only for console sessions. */
const sessionOnly = (done: string) => ({
  sessions: `${done} ${done} ${done} ${done}`,
  keys: "403 403 403 403",
  userKeys: "403 403 403",
  workloads: noWorkload,
  foreignKey: "403",
})
/** Open to anyone, and everyone gets the same. */
const open = (status: string) => ({
  sessions: `${status} ${status} ${status} ${status}`,
  keys: `${status} ${status} ${status} ${status}`,
  userKeys: `${status} ${status} ${status}`,
  workloads: `${status} ${status} ${status} ${status}`,
  foreignKey: status,
  nobody: status,
})
/** Inference: also for workload tokens that carry it; an outsider's session names an organization that is not its own. */
const inference = {
  sessions: "200 200 200 403",
  keys: "200 403 403 403",
  userKeys: "200 200 200",
  workloads: "200 403 403 403",
  foreignKey: "403",
}
const inferenceRequest =
  (path: string, body?: unknown) =>
  ({ org }: Places): Request => ({
    path,
    ...(body === undefined ? {} : { body }),
    headers: { "x-umpire-organization": org },
  })

const provider = {
  name: "matrix",
  config: { type: "oidc", issuer_uri: "https://issuer.example", allowed_audiences: ["umpire"] },
  authorization_rules: [{ condition: "true", permissions: ["inference"] }],
}
const range = "range_start=1&range_end=2"

const organizations: readonly Row[] = [
  {
    endpoint: "POST /v1/organizations",
    ...sessionOnly("200"),
    request: () => ({ path: "/v1/organizations", body: { name: "Made" } }),
  },
  {
    endpoint: "GET /v1/organizations",
    sessions: "200 200 200 200",
    keys: "403 200 403 403",
    userKeys: "200 200 200",
    workloads: noWorkload,
    foreignKey: "200",
    request: () => ({ path: "/v1/organizations" }),
  },
  {
    endpoint: "GET /v1/organizations/{org_id}",
    ...read,
    request: ({ org }) => ({ path: `/v1/organizations/${org}` }),
  },
  {
    endpoint: "PATCH /v1/organizations/{org_id}",
    ...administered("200"),
    request: ({ org }) => ({ path: `/v1/organizations/${org}`, body: { name: "Renamed" } }),
  },
  {
    endpoint: "GET /v1/organizations/{org_id}/resources",
    ...read,
    request: ({ org }) => ({ path: `/v1/organizations/${org}/resources` }),
  },
  {
    endpoint: "GET /v1/organizations/{org_id}/members",
    ...read,
    request: ({ org }) => ({ path: `/v1/organizations/${org}/members` }),
  },
  {
    endpoint: "PATCH /v1/organizations/{org_id}/members/{user_id}",
    ...administered("200"),
    request: async ({ org, member }) => ({
      path: `/v1/organizations/${org}/members/${await member()}`,
      body: { role: "member" },
    }),
  },
  {
    endpoint: "DELETE /v1/organizations/{org_id}/members/{user_id}",
    ...administered("204"),
    request: async ({ org, member }) => ({ path: `/v1/organizations/${org}/members/${await member()}` }),
  },
  {
    endpoint: "GET /v1/organizations/{org_id}/invites",
    ...read,
    request: ({ org }) => ({ path: `/v1/organizations/${org}/invites` }),
  },
  {
    endpoint: "POST /v1/organizations/{org_id}/invites",
    ...administered("200"),
    request: async ({ org, invitation }) => ({
      path: `/v1/organizations/${org}/invites`,
      body: { email: `${(await invitation()).id}@matrix.test`, role: "member" },
    }),
  },
  {
    endpoint: "DELETE /v1/organizations/{org_id}/invites/{invitation_id}",
    ...administered("204"),
    request: async ({ org, invitation }) => ({
      path: `/v1/organizations/${org}/invites/${(await invitation()).id}`,
    }),
  },
  {
    endpoint: "POST /v1/organizations/{org_id}/invites/{invitation_id}/resend",
    ...administered("200"),
    request: async ({ org, invitation }) => ({
      path: `/v1/organizations/${org}/invites/${(await invitation()).id}/resend`,
    }),
  },
  {
    endpoint: "POST /v1/invites/describe",
    ...open("200"),
    request: async ({ invitation }) => ({
      path: "/v1/invites/describe",
      body: { token: (await invitation()).token },
    }),
  },
  {
    // None or a session; the sessions here are of other addresses than the invited one.
    endpoint: "POST /v1/invites/accept",
    sessions: "403 403 403 403",
    keys: "403 403 403 403",
    userKeys: "403 403 403",
    workloads: noWorkload,
    foreignKey: "403",
    nobody: "200",
    request: async ({ invitation }) => ({
      path: "/v1/invites/accept",
      body: { token: (await invitation()).token, password: "long enough" },
    }),
  },
  {
    endpoint: "GET /v1/organizations/{org_id}/models",
    ...read,
    request: ({ org }) => ({ path: `/v1/organizations/${org}/models` }),
  },
  {
    endpoint: "GET /v1/organizations/{org_id}/model_access_requests",
    ...read,
    request: ({ org }) => ({ path: `/v1/organizations/${org}/model_access_requests` }),
  },
  {
    endpoint: "POST /v1/organizations/{org_id}/model_access_requests",
    sessions: "200 200 200 404",
    keys: "403 403 200 403",
    userKeys: "200 200 200",
    workloads: noWorkload,
    foreignKey: "404",
    request: ({ org }) => ({
      path: `/v1/organizations/${org}/model_access_requests`,
      body: { model_sku: "closed" },
    }),
  },
  {
    endpoint: "GET /v1/organizations/{org_id}/routing_policy",
    ...read,
    request: ({ org }) => ({ path: `/v1/organizations/${org}/routing_policy` }),
  },
  {
    // An owner is needed whatever the principal, so an organization's key never suffices.
    endpoint: "PUT /v1/organizations/{org_id}/routing_policy",
    sessions: "204 204 403 404",
    keys: "403 403 403 403",
    userKeys: "204 204 403",
    workloads: noWorkload,
    foreignKey: "404",
    request: ({ org }) => ({ path: `/v1/organizations/${org}/routing_policy`, body: {} }),
  },
  {
    endpoint: "GET /v1/organizations/{org_id}/api_keys",
    ...read,
    request: ({ org }) => ({ path: `/v1/organizations/${org}/api_keys` }),
  },
  {
    endpoint: "POST /v1/organizations/{org_id}/api_keys",
    ...administered("200"),
    request: ({ org }) => ({
      path: `/v1/organizations/${org}/api_keys`,
      body: { name: "made", permissions: ["api-admin"] },
    }),
  },
  {
    endpoint: "PATCH /v1/organizations/{org_id}/api_keys/{key_id}",
    ...administered("200"),
    request: async ({ org, key }) => ({
      path: `/v1/organizations/${org}/api_keys/${await key()}`,
      body: { name: "renamed" },
    }),
  },
  {
    endpoint: "POST /v1/organizations/{org_id}/api_keys/{key_id}/rotate",
    ...administered("200"),
    request: async ({ org, key }) => ({
      path: `/v1/organizations/${org}/api_keys/${await key()}/rotate`,
      body: {},
    }),
  },
  {
    endpoint: "DELETE /v1/organizations/{org_id}/api_keys/{key_id}",
    ...administered("204"),
    request: async ({ org, key }) => ({ path: `/v1/organizations/${org}/api_keys/${await key()}` }),
  },
  {
    endpoint: "GET /v1/organizations/{org_id}/audit_log",
    ...administered("200"),
    request: ({ org }) => ({ path: `/v1/organizations/${org}/audit_log` }),
  },
  {
    endpoint: "GET /v1/organizations/{org_id}/audit_log/filters",
    ...administered("200"),
    request: ({ org }) => ({ path: `/v1/organizations/${org}/audit_log/filters` }),
  },
  {
    endpoint: "GET /v1/organizations/{org_id}/audit_log/export",
    ...administered("200"),
    request: ({ org }) => ({ path: `/v1/organizations/${org}/audit_log/export` }),
  },
]

const sessions: readonly Row[] = [
  {
    endpoint: "POST /v1/session",
    ...open("200"),
    request: async ({ link }) => ({ path: "/v1/session", body: { link: await link() } }),
  },
  { endpoint: "GET /v1/session", ...sessionOnly("200"), request: () => ({ path: "/v1/session" }) },
  { endpoint: "DELETE /v1/session", ...sessionOnly("204"), request: () => ({ path: "/v1/session" }) },
  {
    endpoint: "PATCH /v1/session/user",
    ...sessionOnly("200"),
    request: () => ({ path: "/v1/session/user", body: { name: "Matrix" } }),
  },
  {
    endpoint: "PUT /v1/session/password",
    ...sessionOnly("204"),
    request: () => ({ path: "/v1/session/password", body: { password: "long enough" } }),
  },
  // No provider is configured here.
  { endpoint: "GET /v1/session/sso", ...open("404"), request: () => ({ path: "/v1/session/sso" }) },
  {
    endpoint: "GET /v1/session/sso/callback",
    ...open("404"),
    request: () => ({ path: "/v1/session/sso/callback" }),
  },
]

const providers = "/v1/organizations/{org_id}/workload_identity/providers"
/** Any member may read; keys and workload tokens need `api-admin`. */
const providerRead = {
  sessions: "200 200 200 404",
  keys: "403 403 403 200",
  userKeys: "200 200 403",
  workloads: "403 403 403 200",
  foreignKey: "404",
}
const providersAt = ({ org }: Places, rest = ""): string =>
  `/v1/organizations/${org}/workload_identity/providers${rest}`

const identity: readonly Row[] = [
  { endpoint: `GET ${providers}`, ...providerRead, request: (places) => ({ path: providersAt(places) }) },
  {
    endpoint: `POST ${providers}`,
    ...administered("200"),
    request: (places) => ({ path: providersAt(places), body: provider }),
  },
  {
    endpoint: `GET ${providers}/{provider_id}`,
    ...providerRead,
    request: (places) => ({ path: providersAt(places, "/wi_1") }),
  },
  {
    endpoint: `PATCH ${providers}/{provider_id}`,
    ...administered("200"),
    request: (places) => ({ path: providersAt(places, "/wi_1"), body: { active: false } }),
  },
  {
    endpoint: `DELETE ${providers}/{provider_id}`,
    ...administered("204"),
    request: (places) => ({ path: providersAt(places, "/wi_1") }),
  },
  {
    endpoint: `POST ${providers}/{provider_id}/test`,
    ...administered("200"),
    request: (places) => ({ path: providersAt(places, "/wi_1/test"), body: { subject_token: "a.b.c" } }),
  },
  {
    endpoint: "POST /v1/oauth/token",
    ...open("200"),
    request: () => ({ path: "/v1/oauth/token", body: {} }),
  },
  {
    endpoint: "GET /.well-known/jwks.json",
    ...open("200"),
    request: () => ({ path: "/.well-known/jwks.json" }),
  },
]

/** Analytics also for workload tokens with `api-read`. */
const analyticsRead = { ...read, workloads: "403 200 403 403" }

const analytics: readonly Row[] = [
  {
    endpoint: "GET /v1/organizations/{org_id}/analytics/overview",
    ...analyticsRead,
    request: ({ org }) => ({
      path: `/v1/organizations/${org}/analytics/overview?${range}&group_by=model&metric=requests`,
    }),
  },
  {
    endpoint: "GET /v1/organizations/{org_id}/analytics/sequences/{seq_id}",
    ...analyticsRead,
    request: ({ org }) => ({ path: `/v1/organizations/${org}/analytics/sequences/seq_1` }),
  },
]

const account = "/v1/billing_accounts/{billing_account_id}"
const accountAt = ({ account: id }: Places, rest = ""): string => `/v1/billing_accounts/${id}${rest}`
/** Which of the billing endpoints take workload tokens is the contract's table; those beyond it take none. */
const accountReadByWorkloads = { ...read, workloads: "403 200 403 403" }
const accountChangeByWorkloads = { ...administered("200"), workloads: "403 403 403 200" }
const spendControls = {
  prepaid_low_balance_warning_threshold_cents: null,
  usage_spend_cutoff_threshold_cents: null,
  usage_spend_warning_threshold_cents: null,
}

const billing: readonly Row[] = [
  { endpoint: `GET ${account}`, ...read, request: (places) => ({ path: accountAt(places) }) },
  {
    endpoint: `POST ${account}/refill`,
    ...administered("200"),
    request: (places) => ({ path: accountAt(places, "/refill"), body: { amount_in_cents: 1000 } }),
  },
  {
    endpoint: `GET ${account}/refills/{refill_id}`,
    ...accountReadByWorkloads,
    request: (places) => ({ path: accountAt(places, "/refills/cp_1") }),
  },
  {
    endpoint: `GET ${account}/spend_controls`,
    ...accountReadByWorkloads,
    request: (places) => ({ path: accountAt(places, "/spend_controls") }),
  },
  {
    endpoint: `PUT ${account}/spend_controls`,
    ...accountChangeByWorkloads,
    request: (places) => ({ path: accountAt(places, "/spend_controls"), body: spendControls }),
  },
  {
    endpoint: `GET ${account}/usage_spend`,
    ...accountReadByWorkloads,
    request: (places) => ({ path: accountAt(places, "/usage_spend") }),
  },
  {
    endpoint: `GET ${account}/refills`,
    ...read,
    request: (places) => ({ path: accountAt(places, "/refills") }),
  },
  {
    endpoint: `GET ${account}/auto_refill`,
    ...read,
    request: (places) => ({ path: accountAt(places, "/auto_refill") }),
  },
  {
    endpoint: `PUT ${account}/auto_refill`,
    ...administered("200"),
    request: (places) => ({
      path: accountAt(places, "/auto_refill"),
      body: { enabled: false, threshold_cents: null, recharge_to_cents: null },
    }),
  },
  {
    endpoint: `POST ${account}/payment_method`,
    ...administered("200"),
    request: (places) => ({ path: accountAt(places, "/payment_method") }),
  },
  {
    endpoint: `DELETE ${account}/payment_method`,
    ...administered("204"),
    request: (places) => ({ path: accountAt(places, "/payment_method") }),
  },
  {
    endpoint: `GET ${account}/invoices`,
    ...read,
    request: (places) => ({ path: accountAt(places, "/invoices") }),
  },
  ...["", ".pdf", ".html"].map((form) => ({
    endpoint: `GET ${account}/invoices/{invoice_id}${form}`,
    ...read,
    request: (places: Places) => ({ path: accountAt(places, `/invoices/iv_1${form}`) }),
  })),
  {
    endpoint: "POST /v1/webhooks/stripe",
    ...open("200"),
    request: () => ({ path: "/v1/webhooks/stripe", body: {} }),
  },
]

const message = { role: "user", content: "Hello" }

const gateway: readonly Row[] = [
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
  { endpoint: "GET /v1/models", ...inference, request: inferenceRequest("/v1/models") },
  { endpoint: "GET /v1/models/{model}", ...inference, request: inferenceRequest("/v1/models/open") },
]

const service: readonly Row[] = [
  "/healthz",
  "/readyz",
  "/metrics",
  "/openapi.json",
  "/schemas/question-set.json",
].map((path) => ({
  endpoint: `GET ${path}`,
  ...open("200"),
  request: () => ({ path }),
}))

const setsAt = ({ org }: Places, rest = ""): string => `/v1/organizations/${org}/question_sets${rest}`
const setAt =
  (rest: string, body?: unknown, headers: Record<string, string> = {}) =>
  async (places: Places): Promise<Request> => {
    const set = await places.questionSet()
    const named = rest
      .replace("EXAMPLE", set.example)
      .replace("CASE", set.case)
      .replace("JOB", set.job)
      .replace("ARTEFACT", set.artefact)
    return {
      path: setsAt(places, `/${set.id}${named}`),
      headers,
      ...(body === undefined ? {} : { body }),
    }
  }
let setsNamed = 0
const newSetName = (): string => `matrix-${++setsNamed}`

const questionSets: readonly Row[] = [
  {
    endpoint: "POST /v1/organizations/{org_id}/question_sets/{set_id}/decide",
    ...inference,
    sessions: "200 200 200 404",
    foreignKey: "404",
    request: setAt("/decide", { input: "Hello" }),
  },
  {
    endpoint: "GET /v1/organizations/{org_id}/question_sets",
    ...read,
    request: (places) => ({ path: setsAt(places) }),
  },
  {
    endpoint: "POST /v1/organizations/{org_id}/question_sets",
    ...written("200"),
    request: (places) => ({
      path: setsAt(places),
      body: { name: newSetName(), model: "open", questions: [] },
    }),
  },
  {
    endpoint: "POST /v1/organizations/{org_id}/question_sets/import",
    ...written("200"),
    request: (places) => ({
      path: setsAt(places, "/import"),
      body: { yaml: `name: ${newSetName()}\nmodel: open\nquestions: []\n` },
    }),
  },
  {
    endpoint: "GET /v1/organizations/{org_id}/question_sets/{set_id}",
    ...read,
    request: setAt(""),
  },
  {
    endpoint: "PATCH /v1/organizations/{org_id}/question_sets/{set_id}",
    ...written("200"),
    request: setAt("", { description: "Changed" }),
  },
  {
    endpoint: "DELETE /v1/organizations/{org_id}/question_sets/{set_id}",
    ...written("204"),
    request: setAt(""),
  },
  {
    endpoint: "GET /v1/organizations/{org_id}/question_sets/{set_id}/versions",
    ...read,
    request: setAt("/versions"),
  },
  {
    endpoint: "GET /v1/organizations/{org_id}/question_sets/{set_id}/versions/{version}",
    ...read,
    request: setAt("/versions/1"),
  },
  {
    endpoint: "GET /v1/organizations/{org_id}/question_sets/{set_id}/difference",
    ...read,
    request: setAt("/difference?from=1&to=latest"),
  },
  {
    endpoint: "GET /v1/organizations/{org_id}/question_sets/{set_id}/file",
    ...read,
    request: setAt("/file"),
  },
  {
    endpoint: "GET /v1/organizations/{org_id}/question_sets/{set_id}/examples",
    ...read,
    request: setAt("/examples"),
  },
  {
    endpoint: "POST /v1/organizations/{org_id}/question_sets/{set_id}/examples",
    ...written("200"),
    request: setAt("/examples", { rows: [{ input: "Hello", labels: { rude: false } }] }),
  },
  {
    endpoint: "POST /v1/organizations/{org_id}/question_sets/{set_id}/examples/upload",
    ...written("200"),
    request: setAt("/examples/upload", "input,label\nHello,no\n", { "content-type": "text/csv" }),
  },
  {
    endpoint: "PATCH /v1/organizations/{org_id}/question_sets/{set_id}/examples/{example_id}",
    ...written("200"),
    request: setAt("/examples/EXAMPLE", { labels: { rude: true } }),
  },
  {
    endpoint: "DELETE /v1/organizations/{org_id}/question_sets/{set_id}/examples/{example_id}",
    ...written("204"),
    request: setAt("/examples/EXAMPLE"),
  },
  {
    endpoint: "GET /v1/organizations/{org_id}/question_sets/{set_id}/cases",
    ...read,
    request: setAt("/cases"),
  },
  {
    endpoint: "POST /v1/organizations/{org_id}/question_sets/{set_id}/cases",
    ...written("200"),
    request: setAt("/cases", { cases: [{ input: "Hello", expected: { rude: false } }] }),
  },
  {
    endpoint: "DELETE /v1/organizations/{org_id}/question_sets/{set_id}/cases/{case_id}",
    ...written("204"),
    request: setAt("/cases/CASE"),
  },
  ...[
    { path: "teach", body: {} },
    { path: "check", body: {} },
    { path: "compare", body: { from: "1" } },
  ].map(({ path, body }) => ({
    endpoint: `POST /v1/organizations/{org_id}/question_sets/{set_id}/${path}`,
    ...written("200"),
    // The permission inference is needed too, because it is charged.
    keys: "403 403 403 403",
    request: setAt(`/${path}`, body),
  })),
  {
    endpoint: "GET /v1/organizations/{org_id}/question_sets/{set_id}/jobs",
    ...read,
    request: setAt("/jobs"),
  },
  {
    endpoint: "GET /v1/organizations/{org_id}/question_sets/{set_id}/jobs/{job_id}",
    ...read,
    request: setAt("/jobs/JOB"),
  },
  {
    endpoint: "POST /v1/organizations/{org_id}/question_sets/{set_id}/jobs/{job_id}/cancel",
    ...written("200"),
    request: setAt("/jobs/JOB/cancel"),
  },
  {
    endpoint: "GET /v1/organizations/{org_id}/question_sets/{set_id}/artefacts/{hash}",
    ...read,
    request: setAt("/artefacts/ARTEFACT"),
  },
  {
    endpoint: "GET /v1/organizations/{org_id}/question_sets/{set_id}/shadow",
    ...read,
    request: setAt("/shadow"),
  },
  {
    endpoint: "PUT /v1/organizations/{org_id}/question_sets/{set_id}/labels/{label}",
    ...written("200"),
    request: setAt("/labels/production", { version: 1 }),
  },
  {
    endpoint: "DELETE /v1/organizations/{org_id}/question_sets/{set_id}/labels/{label}",
    ...written("204"),
    request: setAt("/labels/stable"),
  },
]

/** Other areas add their endpoints here; an endpoint without a row fails the matrix. */
export const accessMatrix: readonly Row[] = [
  ...organizations,
  ...sessions,
  ...identity,
  ...analytics,
  ...billing,
  ...gateway,
  ...questionSets,
  ...service,
]
