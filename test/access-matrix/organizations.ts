/** Who gets which answer: organizations, their members and keys, sessions and identity providers. */
import { type Places, type Row, administered, noWorkload, open, read } from "./row.ts"

/** Only for console sessions. */
const sessionOnly = (done: string) => ({
  sessions: `${done} ${done} ${done} ${done}`,
  keys: "403 403 403 403",
  userKeys: "403 403 403",
  workloads: noWorkload,
  foreignKey: "403",
})

const provider = {
  name: "matrix",
  config: { type: "oidc", issuer_uri: "https://issuer.example", allowed_audiences: ["umpire"] },
  authorization_rules: [{ condition: "true", permissions: ["inference"] }],
}

export const organizations: readonly Row[] = [
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
    endpoint: "GET /v1/organizations/{org_id}/tag_budgets",
    ...read,
    request: ({ org }) => ({ path: `/v1/organizations/${org}/tag_budgets` }),
  },
  {
    endpoint: "PUT /v1/organizations/{org_id}/tag_budgets",
    ...administered("200"),
    request: ({ org }) => ({
      path: `/v1/organizations/${org}/tag_budgets`,
      body: { key: "team", value: "ops", budgets: [] },
    }),
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

export const sessions: readonly Row[] = [
  {
    endpoint: "POST /v1/session",
    ...open("200"),
    request: async ({ link }) => ({ path: "/v1/session", body: { link: await link() } }),
  },
  { endpoint: "GET /v1/session", ...sessionOnly("200"), request: () => ({ path: "/v1/session" }) },
  { endpoint: "DELETE /v1/session", ...sessionOnly("204"), request: () => ({ path: "/v1/session" }) },
  { endpoint: "GET /v1/sessions", ...sessionOnly("200"), request: () => ({ path: "/v1/sessions" }) },
  // That a session of one's own ends is tested elsewhere: here each names one that does not exist.
  {
    endpoint: "DELETE /v1/sessions/{session_id}",
    ...sessionOnly("404"),
    request: () => ({ path: "/v1/sessions/ses_none" }),
  },
  {
    endpoint: "GET /v1/organizations/{org_id}/sessions",
    ...administered("200"),
    request: ({ org }) => ({ path: `/v1/organizations/${org}/sessions` }),
  },
  {
    endpoint: "DELETE /v1/organizations/{org_id}/sessions/{session_id}",
    ...administered("404"),
    request: ({ org }) => ({ path: `/v1/organizations/${org}/sessions/ses_none` }),
  },
  {
    endpoint: "GET /v1/organizations/{org_id}/single_sign_on",
    ...read,
    request: ({ org }) => ({ path: `/v1/organizations/${org}/single_sign_on` }),
  },
  {
    endpoint: "PUT /v1/organizations/{org_id}/single_sign_on",
    ...sessionOnly("403"),
    sessions: "200 200 403 404",
    request: ({ org }) => ({ path: `/v1/organizations/${org}/single_sign_on`, body: { required: false } }),
  },
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
  // No mail server is configured here, and no link was made.
  {
    endpoint: "POST /v1/session/reset",
    ...open("404"),
    request: () => ({ path: "/v1/session/reset", body: { email: "nobody@example.com" } }),
  },
  {
    endpoint: "POST /v1/session/reset/finish",
    ...open("401"),
    request: () => ({ path: "/v1/session/reset/finish", body: { link: "none", password: "long enough" } }),
  },
  {
    endpoint: "GET /v1/session/second_factor",
    ...sessionOnly("200"),
    request: () => ({ path: "/v1/session/second_factor" }),
  },
  {
    endpoint: "POST /v1/session/second_factor",
    ...sessionOnly("200"),
    request: () => ({ path: "/v1/session/second_factor", body: {} }),
  },
  ...["confirm", "recovery_codes", "remove"].map((verb) => ({
    endpoint: `POST /v1/session/second_factor/${verb}`,
    ...sessionOnly("409"),
    request: () => ({ path: `/v1/session/second_factor/${verb}`, body: { code: "a-recovery-code" } }),
  })),
  {
    endpoint: "GET /v1/session/passkeys",
    ...sessionOnly("200"),
    request: () => ({ path: "/v1/session/passkeys" }),
  },
  {
    endpoint: "POST /v1/session/passkeys/challenge",
    ...sessionOnly("200"),
    request: () => ({ path: "/v1/session/passkeys/challenge", body: {} }),
  },
  // What no device has made is refused for every caller.
  {
    endpoint: "POST /v1/session/passkeys",
    ...sessionOnly("403"),
    request: () => ({
      path: "/v1/session/passkeys",
      body: { name: "Phone", client_data: "e30", authenticator_data: "e30", public_key: "e30" },
    }),
  },
  {
    endpoint: "DELETE /v1/session/passkeys/{passkey_id}",
    ...sessionOnly("404"),
    request: () => ({ path: "/v1/session/passkeys/pk_1" }),
  },
  {
    endpoint: "POST /v1/session/passkey_challenge",
    ...open("200"),
    request: () => ({ path: "/v1/session/passkey_challenge" }),
  },
  {
    endpoint: "GET /v1/session/options",
    ...open("200"),
    request: () => ({ path: "/v1/session/options" }),
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

export const identity: readonly Row[] = [
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
