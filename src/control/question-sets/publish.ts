/** Labels of versions: moved and removed; moving `production` publishes, and has the frozen cases checked. */
import type { Principal, Membership } from "../../contract/access.ts"
import type { Handle } from "../../contract/endpoint.ts"
import { Fault } from "../../contract/errors.ts"
import type { PlatformTable } from "../../contract/table.ts"
import { questionSetLimits } from "../../contract/question-sets/content.ts"
import {
  type QuestionSet,
  countRows,
  deleteLabel,
  findVersion,
  listLabels,
  putLabel,
  updateSet,
} from "../../store/question-sets/sets.ts"
import { type ChangeScope, acting, change, notFound } from "../audited-change.ts"
import { etag } from "../to-wire.ts"
import { creatorOf } from "../keys.ts"
import { addJob, isRoomForJob } from "./jobs.ts"
import type { QuestionSetDeps } from "./content.ts"
import { lockReadSet, readVersion, toView } from "./view.ts"

export const pointLabel: Handle<QuestionSetDeps, PlatformTable["putQuestionSetLabel"]> = async (
  deps,
  call,
) => {
  const { principal, membership } = acting(call)
  const { label } = call.params
  if (label === "latest")
    throw new Fault("conflict", "Cannot move the label latest: it is always the newest version")
  return await change(deps, call, async (scope) => {
    const { sql, now } = scope
    const set = await lockReadSet(sql, membership, call.params.set_id)
    const version = await readVersion(sql, set, String(call.body.version))
    const labels = await listLabels(sql, set.id)
    const before = labels.find((one) => one.label === label)?.number ?? null
    if (before === null && labels.length >= questionSetLimits.labelsMax)
      throw new Fault("conflict", `Cannot add the label: the set has ${questionSetLimits.labelsMax}`)
    const updatedBy = await creatorOf(sql, principal)
    await putLabel(sql, { setId: set.id, label, number: version.number, updatedBy, updatedAt: now })
    const after = await labelsChanged(scope, set, label, { before, after: version.number })
    if (label === "production")
      await checkCases(deps, scope, after, {
        version: version.number,
        against: before,
        principal,
        membership,
      })
    call.header("etag", etag(after.revision))
    return await toView(deps.catalog, sql, after)
  })
}

/** Runs the frozen cases; not for a caller that may not infer, where nothing is frozen, or where too many jobs are open. */
export async function checkCases(
  deps: QuestionSetDeps,
  scope: ChangeScope,
  set: QuestionSet,
  given: {
    readonly version: number
    readonly against: number | null
    readonly principal: Principal
    readonly membership: Membership
  },
): Promise<void> {
  const { version, against, principal, membership } = given
  if (!membership.permissions.includes("inference") || (await countRows(scope.sql, set.id)).cases === 0)
    return
  if (!(await isRoomForJob(scope.sql, set.organizationId))) return
  await addJob(scope, set, {
    id: deps.ids.next("job"),
    kind: "check",
    input: { version, against },
    principal,
  })
}

export const removeLabel: Handle<QuestionSetDeps, PlatformTable["deleteQuestionSetLabel"]> = async (
  deps,
  call,
) => {
  const { membership } = acting(call)
  await change(deps, call, async (scope) => {
    const set = await lockReadSet(scope.sql, membership, call.params.set_id)
    const version = await findVersion(scope.sql, set, call.params.label)
    if (!version || !(await deleteLabel(scope.sql, set.id, call.params.label))) throw notFound("label")
    await labelsChanged(scope, set, call.params.label, { before: version.number, after: null })
  })
}

/** The set's own row changes with its labels: gateways hear of it, and If-Match sees it. */
async function labelsChanged(
  { sql, now, audit, invalidate }: ChangeScope,
  set: QuestionSet,
  label: string,
  versions: { readonly before: number | null; readonly after: number | null },
): Promise<QuestionSet> {
  const after = await updateSet(sql, set.id, {}, now)
  if (!after) throw notFound("question set")
  const shown = (version: number | null): unknown => (version === null ? null : { label, version })
  await audit(label === "production" ? "question_set.publish" : "question_set.label", set, {
    before: shown(versions.before),
    after: shown(versions.after),
  })
  invalidate({ table: "question_sets", id: set.organizationId })
  return after
}
