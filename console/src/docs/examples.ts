/** What a call of the reference is filled with: values of the reader's own organization, and a body that is accepted. */
import { type Operation, type Reference, exampleOf } from "./document.ts"

/** What is known of the reader; empty where no user is signed in. */
export interface Known {
  readonly organizationId: string
  readonly organizationName: string
  readonly billingAccountId: string
  readonly userId: string
  readonly userName: string
  readonly email: string
  /** A model that answers questions, one that writes, and one that embeds. */
  readonly models: { readonly decisions: string; readonly chat: string; readonly embeddings: string }
}

const dayMs = 86_400_000

/** Parameters by their names. Ids of single things stay empty: the reader names what to read, change or delete. */
export function parametersFor({ id }: Operation, known: Known, nowMs: number): Record<string, string> {
  const range = { range_start: String(nowMs - dayMs), range_end: String(nowMs) }
  return {
    org_id: known.organizationId,
    billing_account_id: known.billingAccountId,
    ...(id === "getModel" ? { model: known.models.decisions } : {}),
    ...(id === "getAnalyticsOverview" ? { ...range, group_by: "model", metric: "requests" } : {}),
  }
}

/** Undefined where the call has no body. */
export function bodyFor({ id, body }: Operation, known: Known, schemas: Reference["schemas"]): unknown {
  if (!body) return undefined
  return bodies[id]?.(known) ?? exampleOf(body, schemas)
}

const evidence = "The parcel arrived two weeks late. I want my money back."
const refund = "Does the customer ask for a refund?"

const bodies: Readonly<Record<string, (known: Known) => unknown>> = {
  createDecision: ({ models }) => ({
    model: models.decisions,
    input: evidence,
    questions: [
      { type: "predicate", name: "refund", instructions: refund },
      {
        type: "choice",
        name: "topic",
        instructions: "What is the message about?",
        choices: [{ value: "delivery" }, { value: "billing" }],
      },
    ],
  }),
  createSystemOne: ({ models }) => ({
    model: models.decisions,
    state: evidence,
    questions: { refund: { type: "noul", instructions: refund } },
  }),
  createChatCompletion: ({ models }) => ({
    model: models.chat,
    messages: [{ role: "user", content: "Say hello in one short sentence." }],
    max_completion_tokens: 32,
  }),
  createResponse: ({ models }) => ({
    model: models.chat,
    input: "Say hello in one short sentence.",
    max_output_tokens: 32,
  }),
  createEmbedding: ({ models }) => ({ model: models.embeddings, input: [evidence] }),
  createRerank: ({ models }) => ({
    model: models.decisions,
    query: "a damaged parcel",
    documents: [evidence, "The invoice is wrong."],
    top_n: 1,
  }),
  createModeration: ({ models }) => ({ model: models.decisions, input: evidence }),
  updateOrganization: ({ organizationName }) => ({ name: organizationName }),
  updateSessionUser: ({ userName }) => ({ name: userName }),
  createOrganization: () => ({ name: "My organization" }),
  updateMember: () => ({ role: "member" }),
  createBatch: () => ({ input_file_id: "file_...", endpoint: "/v1/decisions", completion_window: "24h" }),
  createInvitation: () => ({ email: "colleague@example.com", role: "member" }),
  acceptInvitation: () => ({
    token: "the token of the invitation's link",
    name: "Ada Lovelace",
    password: "a password of your own",
  }),
  requestModelAccess: ({ models }) => ({ model_sku: models.decisions }),
  putRoutingPolicy: () => ({ mode: "nearest", fallback: "visible_regions", regions: [] }),
  putTagBudget: () => ({
    key: "team",
    value: "support",
    budgets: [{ period: "month", cutoff_threshold_cents: 2000, warning_threshold_cents: 1500 }],
    rate_limit: { requests_per_minute: 600, burst: 60 },
  }),
  createWebhook: () => ({
    url: "https://example.com/umpire-events",
    events: ["alert.firing", "alert.resolved"],
  }),
  createGuardrail: () => ({ name: "Injections", question_set: "prompt-injection", stage: "input" }),
  updateGuardrail: () => ({ enabled: false }),
  createVirtualModel: ({ models }) => ({ name: "my-model", alias: models.decisions }),
  updateVirtualModel: ({ models }) => ({ alias: models.decisions }),
  createConnectedModel: () => ({
    sku: "gpt-4.1-mini",
    dialect: "openai",
    url: "https://api.openai.com/v1",
    model: "gpt-4.1-mini",
    key: "the key that the server wants",
    price_m_input_tokens_usd: "0.4",
    price_m_input_cache_read_tokens_usd: "0.1",
    price_m_output_tokens_usd: "1.6",
  }),
  callMcp: () => ({ jsonrpc: "2.0", id: 1, method: "tools/list" }),
  deleteContents: () => ({ reference: "customer-42" }),
  distilQuestionSet: ({ models }) => ({ model: models.chat, budget_usd: "0.50", texts: [evidence] }),
  decideReviewItem: () => ({ label: true }),
  createApiKey: () => ({ name: "My application", permissions: ["inference"] }),
  updateApiKey: () => ({ name: "My application" }),
  rotateApiKey: () => ({ grace_seconds: 3600 }),
  createSession: ({ email }) => ({ email, password: "your password" }),
  requestPasswordReset: ({ email }) => ({ email }),
  finishPasswordReset: () => ({
    link: "what stands behind #reset= in the link",
    password: "the new password",
  }),
  confirmSecondFactor: () => ({ code: "123456" }),
  replaceRecoveryCodes: () => ({ code: "123456" }),
  removeSecondFactor: () => ({ code: "123456" }),
  beginPasskey: () => ({ current_password: "the password of now" }),
  setPassword: () => ({ password: "the new password", current_password: "the password of now" }),
  createRefill: () => ({ amount_in_cents: 1000 }),
  putSpendControls: () => ({
    prepaid_low_balance_warning_threshold_cents: 500,
    usage_spend_warning_threshold_cents: 5000,
    usage_spend_cutoff_threshold_cents: 10_000,
  }),
  putBuyer: () => ({ name: "Acme Ltd", address_lines: ["1 Mill Lane", "London"], tax_number: "GB123456789" }),
  putAutoRefill: () => ({ enabled: false, threshold_cents: null, recharge_to_cents: null }),
  createWorkloadIdentityProvider: () => ({
    name: "GitHub Actions",
    config: {
      type: "oidc",
      issuer_uri: "https://token.actions.githubusercontent.com",
      allowed_audiences: ["umpire"],
      jwks: null,
    },
    attribute_condition: 'assertion.repository_owner == "your-organization"',
    attribute_transformations: {},
    authorization_rules: [{ condition: "true", permissions: ["inference"] }],
  }),
  updateWorkloadIdentityProvider: () => ({ active: false }),
  testWorkloadIdentityProvider: () => ({ subject_token: "the token that the workload would send" }),
  exchangeToken: () => ({
    grant_type: "urn:ietf:params:oauth:grant-type:token-exchange",
    subject_token: "the token of the workload",
    subject_token_type: "urn:ietf:params:oauth:token-type:jwt",
    identity_provider_id: "wi_ and the rest of the provider's id",
  }),
}

/** Calls that a form cannot make, and why. */
export const notFromHere: Readonly<Record<string, string>> = {
  openResponseSocket: "This is a WebSocket: connect to it with a WebSocket client.",
  startSingleSignOn: "This sends the browser to the single sign-on provider: open it from the sign-in page.",
  finishSingleSignOn: "The single sign-on provider sends the browser here.",
  receiveStripeEvent: "Stripe calls this, with a signature.",
}

/** Fields whose value the reader must bring, and where it is found. */
export const placeholders: Readonly<Record<string, string>> = {
  user_id: "from List members",
  guardrail_id: "from Guardrails",
  model_id: "from the virtual models in List the organization's models",
  key_id: "from List API keys",
  invitation_id: "from List invitations",
  provider_id: "from List providers",
  response_id: "resp_…",
  refill_id: "from List refills",
  invoice_id: "from List invoices",
  seq_id: "seq_…",
}
