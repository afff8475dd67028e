/** The pages of the console and their addresses. What a page needs beyond its first paint is loaded with the page. */
import type { QueryClient } from "@tanstack/react-query"
import {
  createRootRouteWithContext,
  createRoute,
  createRouter,
  lazyRouteComponent,
  redirect,
} from "@tanstack/react-router"
import {
  homeOrganization,
  organizationsQuery,
  rememberOrganization,
  sessionQuery,
  setupSkipped,
} from "./session.ts"
import { Layout } from "./shell/layout.tsx"
import { NewOrganization } from "./shell/new-organization.tsx"
import { homeOf } from "./shell/places.ts"
import { type PageRequest, readPageRequest } from "./shell/open-request.ts"
import { OrganizationPageMissing, PageError, PageMissing } from "./shell/page-error.tsx"
import { Loading } from "./parts/page.tsx"
import { readSetSearch } from "./sets/set-tabs.ts"
import { t } from "./i18n/translate.ts"

interface Context {
  readonly queries: QueryClient
}

const root = createRootRouteWithContext<Context>()({
  notFoundComponent: PageMissing,
  errorComponent: PageError,
})

const home = createRoute({
  getParentRoute: () => root,
  path: "/",
  validateSearch: (search: Record<string, unknown>) => ({
    ...(typeof search["sso_error"] === "string" ? { sso_error: search["sso_error"] } : {}),
    ...(typeof search["link"] === "string" || typeof search["link"] === "number"
      ? { link: String(search["link"]) }
      : {}),
  }),
  beforeLoad: async ({ context, search: { link, ...search } }) => {
    if (link) throw redirect({ to: "/sign-in", hash: `link=${encodeURIComponent(link)}` })
    const session = await context.queries.fetchQuery(sessionQuery)
    if (!session) throw redirect({ to: "/sign-in", search })
    const organizations = await context.queries.fetchQuery(organizationsQuery)
    const organization = homeOrganization(organizations)
    if (!organization) throw redirect({ to: "/new-organization" })
    throw redirect({ to: homeOf(organization.role), params: { orgId: organization.id } })
  },
})

const signIn = createRoute({
  getParentRoute: () => root,
  path: "/sign-in",
  validateSearch: (search: Record<string, unknown>) => ({
    ...(typeof search["sso_error"] === "string" ? { sso_error: search["sso_error"] } : {}),
    ...(typeof search["next"] === "string" ? { next: search["next"] } : {}),
  }),
  component: lazyRouteComponent(() => import("./shell/sign-in.tsx"), "SignIn"),
})

const welcome = createRoute({
  getParentRoute: () => root,
  path: "/welcome",
  validateSearch: (search: Record<string, unknown>) =>
    typeof search["next"] === "string" ? { next: search["next"] } : {},
  beforeLoad: async ({ context }) => {
    if (!(await context.queries.fetchQuery(sessionQuery))) throw redirect({ to: "/sign-in" })
  },
  component: lazyRouteComponent(() => import("./shell/welcome.tsx"), "Welcome"),
})

const newOrganization = createRoute({
  getParentRoute: () => root,
  path: "/new-organization",
  beforeLoad: async ({ context }) => {
    if (!(await context.queries.fetchQuery(sessionQuery))) throw redirect({ to: "/sign-in" })
  },
  component: NewOrganization,
})

const join = createRoute({
  getParentRoute: () => root,
  path: "/join",
  component: lazyRouteComponent(() => import("./shell/join.tsx"), "Join"),
})

const docs = createRoute({
  getParentRoute: () => root,
  path: "/docs",
  component: lazyRouteComponent(() => import("./docs/docs-page.tsx"), "DocsPage"),
})

const organization = createRoute({
  getParentRoute: () => root,
  path: "/o/$orgId",
  component: Layout,
  notFoundComponent: OrganizationPageMissing,
  beforeLoad: async ({ context, location, params }) => {
    const session = await context.queries.fetchQuery(sessionQuery)
    if (!session) throw redirect({ to: "/sign-in", search: { next: location.href } })
    if (session.setup_required && !setupSkipped())
      throw redirect({ to: "/welcome", search: { next: location.href } })
    await context.queries.ensureQueryData(organizationsQuery)
    rememberOrganization(params.orgId)
  },
})

const organizationHome = createRoute({
  getParentRoute: () => organization,
  path: "/",
  beforeLoad: async ({ context, params }) => {
    const organizations = await context.queries.ensureQueryData(organizationsQuery)
    const organization = organizations.find(({ id }) => id === params.orgId)
    throw redirect({ to: homeOf(organization?.role ?? "member"), params })
  },
})

const start = createRoute({
  getParentRoute: () => organization,
  path: "start",
  validateSearch: (search: Record<string, unknown>): { set?: string } =>
    typeof search["set"] === "string" ? { set: search["set"] } : {},
  component: lazyRouteComponent(() => import("./start/start-page.tsx"), "StartPage"),
})
const playground = createRoute({
  getParentRoute: () => organization,
  path: "playground",
  component: lazyRouteComponent(() => import("./playground/playground-page.tsx"), "PlaygroundPage"),
})
const chat = createRoute({
  getParentRoute: () => organization,
  path: "chat",
  component: lazyRouteComponent(() => import("./playground/chat-page.tsx"), "ChatPage"),
})
const evaluate = createRoute({
  getParentRoute: () => organization,
  path: "evaluate",
  component: lazyRouteComponent(() => import("./evaluate/evaluate-page.tsx"), "EvaluatePage"),
})
const evaluation = createRoute({
  getParentRoute: () => organization,
  path: "evaluate/$batchId",
  component: lazyRouteComponent(() => import("./evaluate/evaluation-page.tsx"), "EvaluationPage"),
})
const compareEvaluations = createRoute({
  getParentRoute: () => organization,
  path: "evaluate/compare",
  validateSearch: (search: Record<string, unknown>): { a: string; b: string } => ({
    a: typeof search["a"] === "string" ? search["a"] : "",
    b: typeof search["b"] === "string" ? search["b"] : "",
  }),
  component: lazyRouteComponent(() => import("./evaluate/compare-page.tsx"), "ComparePage"),
})
const batches = createRoute({
  getParentRoute: () => organization,
  path: "batches",
  component: lazyRouteComponent(() => import("./batches/batches-page.tsx"), "BatchesPage"),
})
const newBatch = createRoute({
  getParentRoute: () => organization,
  path: "batches/new",
  component: lazyRouteComponent(() => import("./batches/new-batch-page.tsx"), "NewBatchPage"),
})
const batch = createRoute({
  getParentRoute: () => organization,
  path: "batches/$batchId",
  component: lazyRouteComponent(() => import("./batches/batch-page.tsx"), "BatchPage"),
})
const sets = createRoute({
  getParentRoute: () => organization,
  path: "sets",
  validateSearch: readPageRequest,
  component: lazyRouteComponent(() => import("./sets/sets-page.tsx"), "SetsPage"),
})
const set = createRoute({
  getParentRoute: () => organization,
  path: "sets/$setName",
  validateSearch: readSetSearch,
  component: lazyRouteComponent(() => import("./sets/set-page.tsx"), "SetPage"),
})
const review = createRoute({
  getParentRoute: () => organization,
  path: "review",
  validateSearch: (search: Record<string, unknown>): { set?: string } =>
    typeof search["set"] === "string" ? { set: search["set"] } : {},
  component: lazyRouteComponent(() => import("./sets/review-page.tsx"), "ReviewPage"),
})
const analytics = createRoute({
  getParentRoute: () => organization,
  path: "analytics",
  validateSearch: (search: Record<string, unknown>): Record<string, unknown> => search,
  component: lazyRouteComponent(() => import("./analytics/analytics-page.tsx"), "AnalyticsPage"),
})
const requests = createRoute({
  getParentRoute: () => organization,
  path: "requests",
  validateSearch: (search: Record<string, unknown>): Record<string, unknown> => search,
  component: lazyRouteComponent(() => import("./requests/requests-page.tsx"), "RequestsPage"),
})
const record = createRoute({
  getParentRoute: () => organization,
  path: "requests/$seqId",
  component: lazyRouteComponent(() => import("./requests/record-page.tsx"), "RecordPage"),
})
/** The record's address before there was a list of requests; bookmarks hold it. */
const recordBefore = createRoute({
  getParentRoute: () => organization,
  path: "sequences/$seqId",
  beforeLoad: ({ params }) => {
    throw redirect({ to: "/o/$orgId/requests/$seqId", params })
  },
})
const alerts = createRoute({
  getParentRoute: () => organization,
  path: "alerts",
  validateSearch: (search: Record<string, unknown>): PageRequest & { webhook?: string; set?: string } => ({
    ...readPageRequest(search),
    ...(typeof search["webhook"] === "string" ? { webhook: search["webhook"] } : {}),
    ...(typeof search["set"] === "string" ? { set: search["set"] } : {}),
  }),
  component: lazyRouteComponent(() => import("./alerts/alerts-page.tsx"), "AlertsPage"),
})
const guardrails = createRoute({
  getParentRoute: () => organization,
  path: "guardrails",
  component: lazyRouteComponent(() => import("./guardrails/guardrails-page.tsx"), "GuardrailsPage"),
})
const audit = createRoute({
  getParentRoute: () => organization,
  path: "audit",
  validateSearch: (search: Record<string, unknown>): Record<string, unknown> => search,
  component: lazyRouteComponent(() => import("./pages/audit-page.tsx"), "AuditPage"),
})
const keys = createRoute({
  getParentRoute: () => organization,
  path: "keys",
  validateSearch: readPageRequest,
  component: lazyRouteComponent(() => import("./pages/keys-page.tsx"), "KeysPage"),
})
const members = createRoute({
  getParentRoute: () => organization,
  path: "members",
  validateSearch: readPageRequest,
  component: lazyRouteComponent(() => import("./pages/members-page.tsx"), "MembersPage"),
})
const identity = createRoute({
  getParentRoute: () => organization,
  path: "identity",
  validateSearch: readPageRequest,
  component: lazyRouteComponent(() => import("./identity/identity-page.tsx"), "IdentityPage"),
})
const models = createRoute({
  getParentRoute: () => organization,
  path: "models",
  component: lazyRouteComponent(() => import("./models/models-page.tsx"), "ModelsPage"),
})
const cascade = createRoute({
  getParentRoute: () => organization,
  path: "models/$name",
  component: lazyRouteComponent(() => import("./models/cascade-page.tsx"), "CascadePage"),
})
const routing = createRoute({
  getParentRoute: () => organization,
  path: "routing",
  component: lazyRouteComponent(() => import("./routing/routing-page.tsx"), "RoutingPage"),
})
const billing = createRoute({
  getParentRoute: () => organization,
  path: "billing",
  validateSearch: readPageRequest,
  component: lazyRouteComponent(() => import("./billing/billing-page.tsx"), "BillingPage"),
})
const settings = createRoute({
  getParentRoute: () => organization,
  path: "settings",
  component: lazyRouteComponent(() => import("./pages/settings-page.tsx"), "SettingsPage"),
})

const tree = root.addChildren([
  home,
  signIn,
  welcome,
  newOrganization,
  join,
  docs,
  organization.addChildren([
    organizationHome,
    start,
    playground,
    chat,
    evaluate,
    evaluation,
    compareEvaluations,
    batches,
    newBatch,
    batch,
    sets,
    set,
    review,
    analytics,
    requests,
    record,
    recordBefore,
    alerts,
    guardrails,
    audit,
    keys,
    members,
    identity,
    models,
    cascade,
    routing,
    billing,
    settings,
  ]),
])

export function createConsoleRouter(queries: QueryClient) {
  return createRouter({
    routeTree: tree,
    context: { queries },
    defaultPreload: "intent",
    defaultPendingComponent: () => <Loading label={t("Loading the page")} />,
    defaultErrorComponent: PageError,
    defaultNotFoundComponent: PageMissing,
  })
}

declare module "@tanstack/react-router" {
  interface Register {
    router: ReturnType<typeof createConsoleRouter>
  }
}
