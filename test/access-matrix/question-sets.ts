/** Who gets which answer: question sets, kept content and reviews. */
import {
  type Places,
  type Request,
  type Row,
  administered,
  inference,
  read,
  setAt,
  setsAt,
  written,
} from "./row.ts"

let setsNamed = 0

const newSetName = (): string => `matrix-${++setsNamed}`

export const questionSets: readonly Row[] = [
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
    endpoint: "GET /v1/organizations/{org_id}/question_sets/{set_id}/taught",
    ...read,
    request: setAt("/taught?version=1"),
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
    { path: "next", body: {} },
    { path: "distil", body: { model: "open", budget_usd: "1", texts: ["Hello"] } },
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

const contentAt =
  (path: string, body?: unknown) =>
  async ({ org, content, key }: Places): Promise<Request> => {
    const { seq, set, item } = await content()
    const rest = path
      .replace("SEQ", seq)
      .replace("SET", set)
      .replace("ITEM", item)
      .replace("KEY", await key())
    return { path: `/v1/organizations/${org}${rest}`, ...(body === undefined ? {} : { body }) }
  }

export const content: readonly Row[] = [
  {
    endpoint: "GET /v1/organizations/{org_id}/content_settings",
    ...read,
    request: contentAt("/content_settings"),
  },
  {
    endpoint: "PUT /v1/organizations/{org_id}/content_settings",
    ...administered("200"),
    request: contentAt("/content_settings", { keep: "answers" }),
  },
  {
    endpoint: "GET /v1/organizations/{org_id}/api_keys/{key_id}/content_settings",
    ...read,
    request: contentAt("/api_keys/KEY/content_settings"),
  },
  {
    endpoint: "PUT /v1/organizations/{org_id}/api_keys/{key_id}/content_settings",
    ...administered("200"),
    request: contentAt("/api_keys/KEY/content_settings", { content: null }),
  },
  {
    endpoint: "GET /v1/organizations/{org_id}/sequences/{seq_id}/content",
    ...read,
    request: contentAt("/sequences/SEQ/content"),
  },
  {
    endpoint: "POST /v1/organizations/{org_id}/content/search",
    ...read,
    request: contentAt("/content/search", { text: "late" }),
  },
  {
    endpoint: "DELETE /v1/organizations/{org_id}/sequences/{seq_id}/content",
    ...administered("204"),
    request: contentAt("/sequences/SEQ/content"),
  },
  {
    endpoint: "POST /v1/organizations/{org_id}/content/delete",
    ...administered("200"),
    request: contentAt("/content/delete", { reference: "nobody's" }),
  },
  {
    endpoint: "GET /v1/organizations/{org_id}/content/export",
    ...administered("200"),
    request: contentAt("/content/export"),
  },
  {
    endpoint: "GET /v1/organizations/{org_id}/review",
    ...read,
    request: contentAt("/review"),
  },
  {
    endpoint: "GET /v1/organizations/{org_id}/question_sets/{set_id}/review",
    ...read,
    request: contentAt("/question_sets/SET/review"),
  },
  {
    endpoint: "PATCH /v1/organizations/{org_id}/question_sets/{set_id}/review",
    ...written("200"),
    request: contentAt("/question_sets/SET/review", { sample_rate: 0.5 }),
  },
  {
    endpoint: "GET /v1/organizations/{org_id}/question_sets/{set_id}/review/summary",
    ...read,
    request: contentAt("/question_sets/SET/review/summary"),
  },
  {
    endpoint: "POST /v1/organizations/{org_id}/question_sets/{set_id}/review/{item_id}",
    ...written("200"),
    request: contentAt("/question_sets/SET/review/ITEM", { label: "yes" }),
  },
  {
    // The item is not decided yet.
    endpoint: "DELETE /v1/organizations/{org_id}/question_sets/{set_id}/review/{item_id}/label",
    ...written("404"),
    request: contentAt("/question_sets/SET/review/ITEM/label"),
  },
]
