/** Guardrails: created, changed and deleted; the question sets to begin with. */
import type { CallOf, Handlers } from "../contract/endpoint.ts"
import { Fault } from "../contract/errors.ts"
import {
  type GuardrailSettings,
  type Guardrail as GuardrailView,
  type guardrailTable,
  guardrailLimits,
} from "../contract/guardrails/guardrails.ts"
import { readyMadeSets } from "../contract/guardrails/ready-made.ts"
import {
  type Guardrail,
  type GuardrailChanges,
  countGuardrails,
  deleteGuardrail,
  findGuardrail,
  insertGuardrail,
  lockGuardrail,
  pageGuardrails,
  updateGuardrail,
} from "../store/guardrails.ts"
import { findKey } from "../store/keys.ts"
import { lockOrganization } from "../store/organizations.ts"
import { findSet } from "../store/question-sets/sets.ts"
import type { Sql } from "../store/sql.ts"
import {
  type ControlParts,
  acting,
  auditResource,
  change,
  difference,
  found,
  foundAtVersion,
  toList,
  viewAtVersion,
} from "./change.ts"
import { creatorOf } from "./keys.ts"

type Table = typeof guardrailTable

export function guardrailHandlers(parts: ControlParts): Handlers<Table> {
  const { database } = parts
  return {
    async listGuardrails(call) {
      const { organizationId } = acting(call).standing
      return toList(await pageGuardrails(database, organizationId, call.query), toView)
    },
    createGuardrail: async (call) => await create(parts, call),
    async getGuardrail(call) {
      const { organizationId } = acting(call).standing
      const guardrail = await findGuardrail(database, organizationId, call.params.guardrail_id)
      return viewAtVersion(call, found(guardrail, "guardrail"), toView)
    },
    updateGuardrail: async (call) => await update(parts, call),
    deleteGuardrail: async (call) => await remove(parts, call),
    listReadyMadeSets: async () => [...readyMadeSets],
  }
}

async function create(parts: ControlParts, call: CallOf<Table["createGuardrail"]>): Promise<GuardrailView> {
  const { principal, standing } = acting(call)
  const { organizationId } = standing
  checkSettings(call.body)
  return await change(parts, call, async (scope) => {
    const { sql, now, touched } = scope
    await checkTargets(sql, organizationId, call.body)
    // Two that create at once are counted one after the other.
    await lockOrganization(sql, organizationId)
    if ((await countGuardrails(sql, organizationId)) >= guardrailLimits.guardrailsMax)
      throw new Fault(
        "conflict",
        `Cannot create the guardrail: there are ${guardrailLimits.guardrailsMax} already`,
      )
    const guardrail = await insertGuardrail(sql, {
      id: parts.ids.next("gr"),
      organizationId,
      ...toFields(call.body),
      createdBy: await creatorOf(sql, principal),
      createdAt: now,
      updatedAt: now,
    })
    await auditResource(scope, "guardrail.create", guardrail, { before: null, after: settingsOf(guardrail) })
    touched({ table: "guardrails", id: organizationId })
    return viewAtVersion(call, guardrail, toView)
  })
}

async function update(parts: ControlParts, call: CallOf<Table["updateGuardrail"]>): Promise<GuardrailView> {
  const { organizationId } = acting(call).standing
  return await change(parts, call, async (scope) => {
    const { sql, now, touched } = scope
    const locked = await lockGuardrail(sql, organizationId, call.params.guardrail_id)
    const before = foundAtVersion(call, locked, "guardrail")
    const given = Object.fromEntries(Object.entries(call.body).filter(([, value]) => value !== undefined))
    const settings = { ...settingsOf(before), ...given }
    checkSettings(settings)
    await checkTargets(sql, organizationId, call.body)
    const after = found(await updateGuardrail(sql, before.id, toFields(settings), now), "guardrail")
    await auditResource(scope, "guardrail.update", after, difference(settingsOf(before), settingsOf(after)))
    touched({ table: "guardrails", id: organizationId })
    return viewAtVersion(call, after, toView)
  })
}

async function remove(parts: ControlParts, call: CallOf<Table["deleteGuardrail"]>): Promise<void> {
  const { organizationId } = acting(call).standing
  await change(parts, call, async (scope) => {
    const locked = await lockGuardrail(scope.sql, organizationId, call.params.guardrail_id)
    const guardrail = found(locked, "guardrail")
    await deleteGuardrail(scope.sql, guardrail.id)
    await auditResource(scope, "guardrail.delete", guardrail, { before: settingsOf(guardrail), after: null })
    scope.touched({ table: "guardrails", id: organizationId })
  })
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
  { question_set, api_key_id }: CallOf<Table["updateGuardrail"]>["body"],
): Promise<void> {
  const name = question_set?.split("@", 1)[0]
  if (name !== undefined && !(await findSet(sql, organizationId, name)))
    throw bad("question_set", "no such question set is visible")
  if (api_key_id != null && !(await findKey(sql, organizationId, api_key_id)))
    throw bad("api_key_id", "no such API key is visible")
}

const bad = (path: string, message: string): Fault =>
  new Fault("invalid_body", `Cannot use ${path}: ${message}`, { details: [{ path, message }] })

const toFields = (settings: GuardrailSettings): GuardrailChanges => ({
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

const settingsOf = (guardrail: Guardrail): GuardrailSettings => ({
  name: guardrail.name,
  question_set: guardrail.questionSet,
  recognizers: [...guardrail.recognizers],
  api_key_id: guardrail.apiKeyId,
  model: guardrail.model,
  stage: guardrail.stage,
  action: guardrail.action,
  route_model: guardrail.routeModel,
  on_abstain: guardrail.onAbstain,
  on_error: guardrail.onError,
  release: guardrail.release,
  window_characters: guardrail.windowCharacters,
  hold_back_characters: guardrail.holdBackCharacters,
  enabled: guardrail.enabled,
})

const toView = (guardrail: Guardrail): GuardrailView => ({
  id: guardrail.id,
  ...settingsOf(guardrail),
  created_by: guardrail.createdBy,
  created_at: guardrail.createdAt.toISOString(),
  updated_at: guardrail.updatedAt.toISOString(),
  version: Number(guardrail.version),
})
