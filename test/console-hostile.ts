/** An organization whose every name is a script, made by the API: what the console shows of it must stay text. */
import { createClient } from "../src/contract/client.ts"
import { makeOrganization, ownerOf } from "./console.ts"
import type { TestServer } from "./server.ts"

export const evil = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>'

export interface Hostile {
  readonly orgId: string
  /** The record of a request whose model is a script. */
  readonly sequenceId: string
  readonly invitation: string
  readonly batchId: string
  /** A playground's draft, as the browser stores it. */
  readonly draft: { readonly entry: string; readonly value: string }
  /** What must be read on a page as it was written; null where the page shows no name of its own. */
  shownOn(path: string): string | null
}

export async function makeHostile(server: TestServer): Promise<Hostile> {
  const orgId = await makeOrganization(server, evil)
  const { api, token } = await ownerOf(server)
  const { user } = await api.getSession()
  const params = { org_id: orgId }
  await api.createApiKey({ params, body: { name: evil, permissions: ["inference"] } })
  await api.createWorkloadIdentityProvider({
    params,
    body: {
      name: evil,
      config: { type: "oidc", issuer_uri: "https://a.example.com", allowed_audiences: [evil], jwks: null },
      attribute_transformations: { team: JSON.stringify(evil) },
      authorization_rules: [
        { condition: `attribute.team == ${JSON.stringify(evil)}`, permissions: ["inference"] },
        { condition: "true", permissions: [] },
      ],
    },
  })
  await api.createQuestionSet({
    params,
    body: {
      name: "hostile",
      description: evil,
      model: "umpire-decide",
      questions: [{ type: "choice", name: "evil", instructions: evil, choices: [{ value: evil }] }],
    },
  })
  const example = { input: evil, labels: { evil } }
  await api.addQuestionSetExamples({ params: { ...params, set_id: "hostile" }, body: { rows: [example] } })
  await api.createAlertRule({ params, body: { name: evil, kind: "error_rate", target: { model: evil } } })
  await api.createWebhook({ params, body: { url: "https://a.example.com", description: evil } })
  const guardrail = { name: evil.slice(0, 64), question_set: "hostile", enabled: false }
  await api.createGuardrail({ params, body: guardrail })
  const joining = await api.createInvitation({ params, body: { email: "eve@example.com", role: "member" } })
  await createClient(server.url, {}).acceptInvitation({
    body: { token: joining.accept_token ?? "", name: evil, password: "a long enough one" },
  })
  const pending = await api.createInvitation({
    params,
    body: { email: "mallory@example.com", role: "member" },
  })
  return {
    orgId,
    sequenceId: await askAs(server, token, orgId),
    invitation: pending.accept_token ?? "",
    batchId: await makeBatch(server, token, orgId),
    draft: { entry: `umpire.${user.id}.${orgId}.draft`, value: hostileDraft() },
    shownOn: (path) =>
      ["keys", "members", "alerts", "analytics", "requests", "identity", "sets", "batches"].includes(path)
        ? evil
        : null,
  }
}

/** A refused request is recorded with the model that it named and the client that it came from. */
async function askAs(server: TestServer, token: string, orgId: string): Promise<string> {
  const response = await fetch(`${server.url}/v1/decisions`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${token}`,
      "content-type": "application/json",
      "x-umpire-organization": orgId,
      "user-agent": evil,
    },
    body: JSON.stringify({
      model: evil,
      input: evil,
      questions: [{ type: "predicate", name: evil, instructions: evil }],
    }),
  })
  return response.headers.get("x-umpire-sequence") ?? ""
}

/** Of one request that is refused, with a script in all that describes it. */
async function makeBatch({ url }: TestServer, token: string, orgId: string): Promise<string> {
  const headers = { authorization: `Bearer ${token}`, "x-umpire-organization": orgId }
  const body = { model: evil, input: evil, questions: [{ type: "predicate", instructions: evil }] }
  const line = { custom_id: evil, method: "POST", url: "/v1/decisions", body }
  const form = new FormData()
  form.append("purpose", "batch")
  form.append("file", new Blob([JSON.stringify(line)]), `${evil}.jsonl`)
  const uploaded = await fetch(`${url}/v1/files`, { method: "POST", headers, body: form })
  const { id } = (await uploaded.json()) as { id: string }
  const batch = await createClient(url, headers).createBatch({
    body: {
      input_file_id: id,
      endpoint: "/v1/decisions",
      completion_window: "24h",
      metadata: { name: evil, kind: evil, model: evil, question: evil, sheet_file_id: id },
    },
  })
  return batch.id
}

function hostileDraft(): string {
  const options = [evil, "b"].map((value) => ({ value, description: evil }))
  const questions = [{ type: "choice", name: evil, instructions: evil, options }]
  return JSON.stringify({ api: "decisions", model: evil, rival: null, evidence: evil, questions })
}
