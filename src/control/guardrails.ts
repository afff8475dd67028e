/** Guardrails: created, changed and deleted; the question sets to begin with. */
import type { CallOf, Handlers } from "../contract/endpoint.ts"
import { Fault } from "../contract/errors.ts"
import {
  type GuardrailSettings,
  type Guardrail as GuardrailView,
  type guardrailTable,
  guardrailLimits,
  readyMadeSets,
} from "../contract/guardrails/guardrails.ts"
import { type Guardrail, guardrails } from "../store/organization-snapshot.ts"
import { findKey } from "../store/keys.ts"
import { findSet } from "../store/question-sets/sets.ts"
import type { Sql } from "../store/sql.ts"
import { type ControlDeps, acting } from "./audited-change.ts"
import { creatorOf } from "./keys.ts"
import { given, handlersOf, resource, changeView } from "./resource.ts"
import { toWire } from "./to-wire.ts"

const resources = resource({
  type: "guardrail",
  noun: "guardrail",
  idPrefix: "gr",
  table: guardrails,
  limit: guardrailLimits.guardrailsMax,
  versionOf: ({ version }) => version,
  toView,
  audited: settingsOf,
  invalidates: ({ organizationId }) => ({ table: "guardrails", id: organizationId }),
})

export function guardrailHandlers(deps: ControlDeps): Handlers<typeof guardrailTable> {
  const { list, get, create, update, remove } = handlersOf(deps, resources)
  return {
    listGuardrails: list,
    async createGuardrail(call) {
      const { principal, organizationId } = acting(call)
      checkSettings(call.body)
      return await create(call, async ({ sql }) => {
        await checkTargets(sql, organizationId, call.body)
        return { ...toFields(call.body), createdBy: await creatorOf(sql, principal) }
      })
    },
    getGuardrail: async (call) => await get(call, call.params.guardrail_id),
    updateGuardrail: async (call) =>
      await update(call, call.params.guardrail_id, async ({ sql }, before) => {
        const settings = { ...settingsOf(before), ...given(call.body) }
        checkSettings(settings)
        await checkTargets(sql, before.organizationId, call.body)
        return toFields(settings)
      }),
    deleteGuardrail: async (call) => await remove(call, call.params.guardrail_id),
    listReadyMadeSets: async () => [...readyMadeSets],
  }
}

/** What one field allows and another forbids. */
function checkSettings(settings: GuardrailSettings): void {
  const { action, stage, route_model, window_characters, hold_back_characters } = settings
  if ((action === "route") !== (route_model !== null))
    throw bad("route_model", "the action route needs a model, and no other action has one")
  if (action === "route" && stage !== "input")
    throw bad("stage", "the action route is for the stage input only")
  if (hold_back_characters >= window_characters)
    throw bad("hold_back_characters", "it must be smaller than window_characters")
}

/** What is named must be there when it is saved; what is not given may name what has been deleted since. */
async function checkTargets(
  sql: Sql,
  organizationId: string,
  { question_set, api_key_id }: CallOf<(typeof guardrailTable)["updateGuardrail"]>["body"],
): Promise<void> {
  const name = question_set?.split("@", 1)[0]
  if (name !== undefined && !(await findSet(sql, organizationId, name)))
    throw bad("question_set", "no such question set is visible")
  if (api_key_id != null && !(await findKey(sql, organizationId, api_key_id)))
    throw bad("api_key_id", "no such API key is visible")
}

const bad = (path: string, message: string): Fault =>
  new Fault("invalid_body", `Cannot use ${path}: ${message}`, { details: [{ path, message }] })

const toFields = (settings: GuardrailSettings) => ({
  name: settings.name,
  questionSet: settings.question_set,
  recognizers: settings.recognizers,
  apiKeyId: settings.api_key_id,
  model: settings.model,
  stage: settings.stage,
  action: settings.action,
  routeModel: settings.route_model,
  onAbstain: settings.on_abstain,
  onError: settings.on_error,
  release: settings.release,
  windowCharacters: settings.window_characters,
  holdBackCharacters: settings.hold_back_characters,
  enabled: settings.enabled,
})

function settingsOf(guardrail: Guardrail): GuardrailSettings {
  return {
    ...toWire(guardrail, "name", "questionSet", "recognizers", "apiKeyId", "model", "stage", "action"),
    ...toWire(guardrail, "routeModel", "onAbstain", "onError", "release"),
    ...toWire(guardrail, "windowCharacters", "holdBackCharacters", "enabled"),
  }
}

function toView(guardrail: Guardrail): GuardrailView {
  return { id: guardrail.id, ...settingsOf(guardrail), ...changeView(guardrail) }
}
