/** Question sets: created, changed into new versions, labelled and published, exported and imported. */
import { threads } from "../../base/peer/threads.ts"
import type { Principal, Membership } from "../../contract/access.ts"
import { Document, DocumentStream, type Handlers, type Handle } from "../../contract/endpoint.ts"
import { Fault } from "../../contract/errors.ts"
import {
  type QuestionSetContent,
  questionSetLimits,
  type TaughtSetFile,
} from "../../contract/question-sets/content.ts"
import type { setTable, ShadowSettings } from "../../contract/question-sets/sets.ts"
import { lockOrganization } from "../../store/organizations.ts"
import {
  countSets,
  decodeContent,
  deleteSet,
  encodeContent,
  insertSet,
  insertVersion,
  listArtefacts,
  listLabels,
  lockSet,
  pageSets,
  pageVersions,
  putLabel,
  type QuestionSet,
  type SetVersion,
  updateSet,
} from "../../store/question-sets/sets.ts"
import { type Sql, isUniqueViolation } from "../../store/sql.ts"
import { type ChangeScope, acting, change, notFound, toList } from "../audited-change.ts"
import { checkVersion, etag } from "../to-wire.ts"
import { creatorOf } from "../keys.ts"
import {
  artefactsIn,
  checkModel,
  checkRules,
  differenceOf,
  keepArtefacts,
  type QuestionSetDeps,
} from "./content.ts"
import { readFileTask, writeFile } from "./file.ts"
import { checkCases, pointLabel, removeLabel } from "./publish.ts"
import {
  lockReadSet,
  outdatedSets,
  readSet,
  readVersion,
  settingsOf,
  toSummary,
  toVersion,
  toVersionItem,
  toView,
} from "./view.ts"

type Table = typeof setTable

export function setHandlers(deps: QuestionSetDeps): Handlers<Table> {
  const { database } = deps
  return {
    async listQuestionSets(call) {
      const { organizationId } = acting(call)
      const page = await pageSets(database, organizationId, call.query)
      const contents = new Map(page.items.map(({ id, content }) => [id, decodeContent(content)]))
      const listed = [...contents].map(([setId, content]) => ({ setId, content }))
      const outdated = await outdatedSets(deps.catalog, database, organizationId, listed)
      return toList(page, (set) => {
        const content = contents.get(set.id) ?? decodeContent(set.content)
        const summary = { content, production: set.production, outdated: outdated.has(set.id) }
        return { ...toSummary(set, summary), examples: set.examples }
      })
    },
    createQuestionSet: async (call) => await create(deps, call),
    importQuestionSet: async (call) => await importFile(deps, call),
    async getQuestionSet(call) {
      const set = await readSet(database, acting(call).membership, call.params.set_id)
      call.header("etag", etag(set.revision))
      return await toView(deps.catalog, database, set)
    },
    updateQuestionSet: async (call) => await update(deps, call),
    deleteQuestionSet: async (call) => await remove(deps, call),
    async listQuestionSetVersions(call) {
      const set = await readSet(database, acting(call).membership, call.params.set_id)
      const [page, labels] = await Promise.all([
        pageVersions(database, set.id, call.query),
        listLabels(database, set.id),
      ])
      return toList(page, (version) => toVersionItem(version, set, labels))
    },
    async getQuestionSetVersion(call) {
      const set = await readSet(database, acting(call).membership, call.params.set_id)
      const version = await readVersion(database, set, call.params.version)
      return toVersion(version, set, await listLabels(database, set.id))
    },
    async compareQuestionSetVersions(call) {
      const set = await readSet(database, acting(call).membership, call.params.set_id)
      const from = await readVersion(database, set, call.query.from)
      const to = await readVersion(database, set, call.query.to)
      const changes = differenceOf(decodeContent(from.content), decodeContent(to.content))
      return { from: from.number, to: to.number, changes }
    },
    putQuestionSetLabel: async (call) => await pointLabel(deps, call),
    deleteQuestionSetLabel: async (call) => await removeLabel(deps, call),
    async exportQuestionSet(call) {
      const set = await readSet(database, acting(call).membership, call.params.set_id)
      const { content } = await readVersion(database, set, call.query.version)
      const schemaUrl = `${deps.publicUrl()}/schemas/question-set.json`
      return new Document(Buffer.from(writeFile(set, decodeContent(content), schemaUrl)))
    },
    async exportTaughtQuestionSet(call) {
      const set = await readSet(database, acting(call).membership, call.params.set_id)
      const { number, hash, content: stored } = await readVersion(database, set, call.query.version)
      const content = decodeContent(stored)
      const head = { format: "umpire-set/1", name: set.name, version: number, hash, content } as const
      return new DocumentStream(writeTaught(database, set, head))
    },
  }
}

/** One artefact at a time: together they may have dozens of megabytes. */
async function* writeTaught(
  sql: Sql,
  set: QuestionSet,
  head: Omit<TaughtSetFile, "artefacts">,
): AsyncGenerator<string> {
  yield `${JSON.stringify(head).slice(0, -1)},"artefacts":[`
  let separator = ""
  for (const hash of artefactsIn(head.content))
    for (const { body } of await listArtefacts(sql, set.id, [hash])) {
      yield separator + JSON.stringify(body)
      separator = ","
    }
  yield "]}"
}

const create: Handle<QuestionSetDeps, Table["createQuestionSet"]> = async (deps, call) => {
  const { principal, membership } = acting(call)
  const { name, description, ...content } = call.body
  const id = deps.ids.next("qs")
  return await change(deps, call, async (scope) => {
    const set = await insert(deps, scope, { id, name, description, content, principal, membership })
    call.header("etag", etag(set.revision))
    return await toView(deps.catalog, scope.sql, set)
  })
}

interface NewSet {
  readonly id: string
  readonly name: string
  readonly description: string
  readonly content: QuestionSetContent
  readonly principal: Principal
  readonly membership: Membership
  readonly note?: string | undefined
}

async function insert(deps: QuestionSetDeps, scope: ChangeScope, given: NewSet): Promise<QuestionSet> {
  const { sql, now, audit, invalidate } = scope
  const { id, name, description, principal, membership } = given
  const { organizationId } = membership
  await checkModel(deps.catalog, sql, organizationId, given.content.model)
  checkRules(given.content)
  const content = keepArtefacts(given.content, null)
  refuseUnknownArtefacts(artefactsIn(content), [])
  // Two that create at once are counted one after the other.
  await lockOrganization(sql, organizationId)
  if ((await countSets(sql, organizationId)) >= questionSetLimits.setsMax)
    throw new Fault("conflict", `Cannot create the set: there are ${questionSetLimits.setsMax} already`)
  const createdBy = await creatorOf(sql, principal)
  const set = await insertSet(sql, {
    id,
    organizationId,
    name,
    description,
    latest: 1,
    createdBy,
    createdAt: now,
    updatedAt: now,
  }).catch((error: unknown) => {
    throw isUniqueViolation(error) ? nameTaken(name) : error
  })
  const { text, hash } = encodeContent(content)
  const note = given.note ?? ""
  await insertVersion(sql, { setId: id, number: 1, hash, content: text, note, createdBy, createdAt: now })
  // What answers is what somebody published; the first version is, since there is no other.
  await putLabel(sql, { setId: id, label: "production", number: 1, updatedBy: createdBy, updatedAt: now })
  await audit(
    "question_set.create",
    { organizationId, id },
    { after: { name, description, version: 1, hash } },
  )
  invalidate({ table: "question_sets", id: organizationId })
  return set
}

const importFile: Handle<QuestionSetDeps, Table["importQuestionSet"]> = async (deps, call) => {
  const { principal, membership, organizationId } = acting(call)
  const { yaml, note } = call.body
  const file = await threads.run(organizationId, readFileTask, yaml, call.request.signal)
  const { name, description, ...content } = file
  const id = deps.ids.next("qs")
  return await change(deps, call, async (scope) => {
    const before = await lockSet(scope.sql, organizationId, name)
    if (!before || before.name !== name) {
      const set = await insert(deps, scope, { id, name, description, content, principal, membership, note })
      return { set: await toView(deps.catalog, scope.sql, set), result: "created" as const }
    }
    const set = await revise(deps, scope, before, { description, content, note, principal })
    const result = set.revision === before.revision ? ("unchanged" as const) : ("changed" as const)
    return { set: await toView(deps.catalog, scope.sql, set), result }
  })
}

const update: Handle<QuestionSetDeps, Table["updateQuestionSet"]> = async (deps, call) => {
  const { principal, membership } = acting(call)
  const { name, description, note, shadow, model, questions, calibration } = call.body
  return await change(deps, call, async (scope) => {
    const { sql } = scope
    const before = await lockReadSet(sql, membership, call.params.set_id)
    checkVersion(call.request, before.revision)
    const current = decodeContent((await readVersion(sql, before, "latest")).content)
    const content = {
      model: model ?? current.model,
      questions: questions ?? current.questions,
      calibration: calibration === undefined ? current.calibration : calibration,
    }
    if (shadow) {
      if (shadow.model !== null) await checkModel(deps.catalog, sql, before.organizationId, shadow.model)
      if (shadow.version !== null) await readVersion(sql, before, String(shadow.version))
    }
    const set = await revise(deps, scope, before, {
      name,
      description,
      content,
      note,
      principal,
      ...(shadow === undefined ? {} : { shadow }),
    })
    if (content.model !== current.model)
      await checkCases(deps, scope, set, {
        version: set.latest,
        against: before.latest,
        principal,
        membership,
      })
    call.header("etag", etag(set.revision))
    return await toView(deps.catalog, sql, set)
  })
}

interface Revision {
  readonly name?: string | undefined
  readonly description?: string | undefined
  readonly content: QuestionSetContent
  readonly note?: string | undefined
  readonly shadow?: ShadowSettings | null
  readonly principal: Principal
}

/** Makes a new version where the content differs; answers the set as it was where nothing does. */
async function revise(
  deps: QuestionSetDeps,
  scope: ChangeScope,
  before: QuestionSet,
  revision: Revision,
): Promise<QuestionSet> {
  const { sql, now, audit, invalidate } = scope
  const old = await readVersion(sql, before, "latest")
  const added = await addVersion(deps, scope, before, old, revision)
  const { shadow } = revision
  const settings = {
    ...(revision.name === undefined || revision.name === before.name ? {} : { name: revision.name }),
    ...(revision.description === undefined || revision.description === before.description
      ? {}
      : { description: revision.description }),
    ...(shadow === undefined
      ? {}
      : {
          shadowVersion: shadow?.version ?? null,
          shadowModel: shadow?.model ?? null,
          shadowShare: shadow?.share ?? 0,
          shadowCostMaxDayUsd: shadow?.cost_max_day_usd ?? "0",
        }),
  }
  if (!added && Object.keys(settings).length === 0) return before
  const changes = { ...settings, ...(added ? { latest: added.number } : {}) }
  const after = await updateSet(sql, before.id, changes, now).catch((error: unknown) => {
    throw isUniqueViolation(error) ? nameTaken(revision.name ?? "") : error
  })
  if (!after) throw notFound("question set")
  await audit("question_set.update", before, {
    before: { ...settingsOf(before), version: before.latest, hash: old.hash },
    after: { ...settingsOf(after), version: after.latest, hash: added?.hash ?? old.hash },
  })
  invalidate({ table: "question_sets", id: before.organizationId })
  return after
}

async function addVersion(
  deps: QuestionSetDeps,
  { sql, now }: ChangeScope,
  set: QuestionSet,
  old: SetVersion,
  { content: given, note, principal }: Revision,
): Promise<SetVersion | null> {
  const current = decodeContent(old.content)
  const content = keepArtefacts(given, current)
  const { text, hash } = encodeContent(content)
  if (hash === old.hash) return null
  checkRules(content)
  // A model that is gone meanwhile does not keep thresholds from being changed.
  if (content.model !== current.model) await checkModel(deps.catalog, sql, set.organizationId, content.model)
  const named = artefactsIn(content)
  const known = await listArtefacts(sql, set.id, named)
  refuseUnknownArtefacts(
    named,
    known.map((artefact) => artefact.hash),
  )
  if (set.latest >= questionSetLimits.versionsMax)
    throw new Fault("conflict", `Cannot change the set: it has ${questionSetLimits.versionsMax} versions`)
  const version: SetVersion = {
    setId: set.id,
    number: set.latest + 1,
    hash,
    content: text,
    note: note ?? "",
    createdBy: await creatorOf(sql, principal),
    createdAt: now,
  }
  await insertVersion(sql, version)
  return version
}

const remove: Handle<QuestionSetDeps, Table["deleteQuestionSet"]> = async (deps, call) => {
  const { membership } = acting(call)
  await change(deps, call, async ({ sql, audit, invalidate }) => {
    const set = await lockReadSet(sql, membership, call.params.set_id)
    await deleteSet(sql, set.id)
    await audit("question_set.delete", set, { before: { ...settingsOf(set), version: set.latest } })
    invalidate({ table: "question_sets", id: set.organizationId })
  })
}

const nameTaken = (name: string): Fault =>
  new Fault("conflict", `Cannot use the name ${name}: another set of the organization has it`)

function refuseUnknownArtefacts(named: readonly string[], known: readonly string[]): void {
  const missing = named.find((hash) => !known.includes(hash))
  if (missing === undefined) return
  throw new Fault(
    "invalid_body",
    "Cannot save the set: a question names an artefact that was not taught here; leave `artefact` out",
    { details: [{ path: "questions", message: `no artefact ${missing}` }] },
  )
}
