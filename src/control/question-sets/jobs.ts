/** Jobs of question sets: started, read and cancelled here; gateways run them. And what they leave behind. */
import { usdText } from "../../base/money.ts"
import type { Membership, Principal } from "../../contract/access.ts"
import type { CallOf, Handlers, OutputOf } from "../../contract/endpoint.ts"
import { Fault } from "../../contract/errors.ts"
import type { QuestionSetContent } from "../../contract/question-sets/content.ts"
import {
  type Artefact,
  type SetJob,
  type jobTable,
  shadowPairsMax,
} from "../../contract/question-sets/jobs.ts"
import { cohensKappa, type LabelPair } from "../../scoring/evaluation.ts"
import { type BeforeAndAfter, type Figures, readArtefact } from "../../scoring/teach/artefact.ts"
import { riskCoverage } from "../../scoring/teach/promise.ts"
import { listCascadeDays, shadowDays } from "../../store/cascade-days.ts"
import { sealInput } from "../../store/question-sets/examples.ts"
import {
  type Job,
  type ListedJob,
  cancelJob,
  findJob,
  pageJobs,
  listShadowCells,
  countOpenJobs,
  insertJob,
  abstained,
  decodeVerdict,
  type ShadowCell,
} from "../../store/question-sets/jobs.ts"
import {
  countRows,
  decodeContent,
  listArtefacts,
  type QuestionSet,
  type Artefact as StoredArtefact,
} from "../../store/question-sets/sets.ts"
import type { Sql } from "../../store/sql.ts"
import { type ChangeScope, type ControlDeps, acting, change, notFound, toList } from "../audited-change.ts"
import { toWire } from "../to-wire.ts"
import { checkModel, type QuestionSetDeps } from "./content.ts"
import { lockReadSet, readSet, readVersion } from "./view.ts"

export function jobHandlers(deps: QuestionSetDeps): Handlers<typeof jobTable> {
  const { database } = deps
  return {
    teachQuestionSet: async (call) =>
      await start(deps, call, "teach", async (set, { sql }) => {
        const { questions = null, target_accuracy = null, hold_out } = call.body
        const { number } = await readVersion(sql, set, call.body.version)
        if ((await countRows(sql, set.id)).examples === 0)
          throw new Fault("conflict", "Cannot teach the set: it has no examples")
        return { version: number, questions, target_accuracy, hold_out }
      }),
    checkQuestionSet: async (call) =>
      await start(deps, call, "check", async (set, { sql }) => {
        const { number } = await readVersion(sql, set, call.body.version)
        const against =
          call.body.against === undefined ? null : await readVersion(sql, set, call.body.against)
        if ((await countRows(sql, set.id)).cases === 0)
          throw new Fault("conflict", "Cannot check the set: it has no frozen cases")
        return { version: number, against: against?.number ?? null }
      }),
    runQuestionSetComparison: async (call) =>
      await start(deps, call, "compare", async (set, { sql }) => {
        const from = await readVersion(sql, set, call.body.from)
        const to = await readVersion(sql, set, call.body.to)
        return { from: from.number, to: to.number }
      }),
    proposeQuestionSetLabels: async (call) => {
      const { count, candidates_max, texts } = call.body
      return await start(deps, call, "next", async (set, { sql }, id) => {
        const { number, content } = await readVersion(sql, set, call.body.version)
        const question = questionOf(decodeContent(content), call.body.question)
        const stored = texts
          ? sealInput(deps.content.cipher, { id, setId: set.id }, JSON.stringify(texts))
          : null
        return { version: number, question, count, candidates_max, texts: stored }
      })
    },
    distilQuestionSet: async (call) => {
      const { model, questions = null, budget_usd, texts } = call.body
      return await start(deps, call, "distil", async (set, { sql }, id) => {
        const { number, content } = await readVersion(sql, set, call.body.version)
        for (const name of questions ?? []) questionOf(decodeContent(content), name)
        await checkModel(deps.catalog, sql, set.organizationId, model)
        const stored = texts
          ? sealInput(deps.content.cipher, { id, setId: set.id }, JSON.stringify(texts))
          : null
        return { version: number, model, questions, budget_usd, texts: stored }
      })
    },
    async listQuestionSetJobs(call) {
      const set = await readSet(database, acting(call).membership, call.params.set_id)
      return toList(await pageJobs(database, set.id, call.query), toJob)
    },
    async getQuestionSetJob(call) {
      const set = await readSet(database, acting(call).membership, call.params.set_id)
      const job = await findJob(database, set.id, call.params.job_id)
      if (!job) throw notFound("job")
      return toJob(job)
    },
    async cancelQuestionSetJob(call) {
      const { membership } = acting(call)
      return await change(deps, call, async ({ sql, now, invalidate }) => {
        const set = await readSet(sql, membership, call.params.set_id)
        const job = await cancelJob(sql, set.id, call.params.job_id, now)
        if (!job) throw notFound("job")
        invalidate({ table: "question_set_jobs", id: job.id })
        return toJob(job)
      })
    },
    async getQuestionSetArtefact(call) {
      const set = await readSet(database, acting(call).membership, call.params.set_id)
      const [artefact] = await listArtefacts(database, set.id, [call.params.hash])
      if (!artefact) throw notFound("artefact")
      return toArtefact(artefact)
    },
    async getQuestionSetShadowReport(call) {
      const set = await readSet(database, acting(call).membership, call.params.set_id)
      const named = { organizationId: set.organizationId, cascade: shadowDays(set.id) }
      const days = await listCascadeDays(database, named, daysListedMax)
      return {
        questions: shadowReport(await listShadowCells(database, set.id)),
        days: days.map(({ costTicks, ...day }) => ({
          ...toWire(day, "day", "requests", "questions", "changed", "unanswered"),
          cost_usd: usdText(costTicks),
        })),
      }
    },
  }
}

const daysListedMax = 31

/** Throws Fault `invalid_body` where none is named and there are several. */
function questionOf({ questions }: QuestionSetContent, name: string | undefined): string {
  const [first, second] = questions
  const found = name === undefined ? (second ? undefined : first) : questions.find((one) => one.name === name)
  if (found) return found.name
  const message =
    name === undefined && second
      ? `name one of its questions: ${questions
          .map((one) => one.name)
          .join(", ")
          .slice(0, 500)}`
      : `the set has no ${name === undefined ? "questions" : `question ${name}`}`
  throw new Fault("invalid_body", `Cannot start the job: ${message}`, {
    details: [{ path: "question", message }],
  })
}

type StartCall = Pick<
  CallOf<(typeof jobTable)["teachQuestionSet"]>,
  "principal" | "membership" | "params" | "request" | "idempotency"
>

async function start(
  deps: ControlDeps,
  call: StartCall,
  kind: Job["kind"],
  read: (set: QuestionSet, scope: ChangeScope, id: string) => Promise<object>,
): Promise<SetJob> {
  const { principal, membership, organizationId } = acting(call)
  checkMayInfer(membership)
  return await change(deps, call, async (scope) => {
    const set = await lockReadSet(scope.sql, membership, call.params.set_id)
    const id = deps.ids.next("job")
    const input = await read(set, scope, id)
    if (!(await isRoomForJob(scope.sql, organizationId)))
      throw new Fault(
        "conflict",
        `Cannot start the job: ${openJobsMax} of the organization are waiting or running`,
      )
    const job = await addJob(scope, set, { id, kind, input, principal })
    // Texts are not for the log.
    await scope.audit(`question_set.${kind}`, set, { after: { job: job.id, ...input, texts: undefined } })
    return toJob(job)
  })
}

/** A key that may not infer may not have others infer for it. */
function checkMayInfer({ permissions }: Membership): void {
  if (!permissions.includes("inference"))
    throw new Fault("permission_denied", "Cannot start the job: the permission inference is needed too")
}

function toJob(job: ListedJob): SetJob {
  const result: unknown = job.result === null ? null : JSON.parse(job.result)
  // A gateway writes the result that the job's kind has.
  return {
    kind: job.kind,
    id: job.id,
    state: job.state,
    progress: job.progress,
    error: job.error,
    created_at: job.createdAt.toISOString(),
    started_at: job.startedAt?.toISOString() ?? null,
    finished_at: job.finishedAt?.toISOString() ?? null,
    result,
  } as SetJob
}

const curvePointsMax = 100

function toArtefact({ hash, question, body, createdAt }: StoredArtefact): Artefact {
  const taught = readArtefact(body)
  return {
    hash,
    question,
    form: taught.form,
    forms: taught.forms.map(({ form, logLoss, standardError, weight }) => ({
      form,
      log_loss: logLoss,
      standard_error: standardError,
      weight: weight ?? null,
    })),
    model_version: taught.modelVersion,
    rows: {
      train: taught.rows.train,
      held_out: taught.rows.heldOut,
      teacher: taught.teacher?.rows ?? 0,
    },
    examples_hash: taught.examplesHash,
    cross_validated: toBoth(taught.crossValidated),
    held_out: taught.heldOut && toBoth(taught.heldOut),
    baselines: {
      majority: taught.baselines.majority,
      random: taught.baselines.random,
      empty_evidence: taught.baselines.emptyEvidence,
      answered_without_evidence: taught.baselines.answeredWithoutEvidence,
    },
    curve: riskCoverage(taught.heldOutAnswers, curvePointsMax).map((point) => ({
      threshold: point.threshold,
      coverage: point.coverage,
      risk: point.risk,
      risk_high: point.riskHigh,
      rows: point.rows,
    })),
    rules: (taught.rules ?? []).map(({ weight, met, right }) => ({ weight, met, right })),
    learning: (taught.learning ?? []).map(({ rows, accuracy }) => ({ rows, accuracy })),
    notes: [...taught.notes],
    created_at: createdAt.toISOString(),
  }
}

const toBoth = ({ before, after }: BeforeAndAfter) => ({ before: toFigures(before), after: toFigures(after) })

const toFigures = ({ rows, accuracy, calibrationError, brier }: Figures) => ({
  rows,
  accuracy,
  calibration_error: calibrationError,
  brier,
})

/** Of one organization, waiting or running. */
const openJobsMax = 10

export const isRoomForJob = async (sql: Sql, organizationId: string): Promise<boolean> =>
  (await countOpenJobs(sql, organizationId)) < openJobsMax

export async function addJob(
  { sql, now, invalidate }: ChangeScope,
  set: QuestionSet,
  given: Pick<Job, "id" | "kind"> & { readonly input: unknown; readonly principal: Principal },
): Promise<Job> {
  const job = await insertJob(sql, {
    id: given.id,
    setId: set.id,
    organizationId: set.organizationId,
    kind: given.kind,
    input: JSON.stringify(given.input),
    principal: JSON.stringify(given.principal),
    createdAt: now,
  })
  invalidate({ table: "question_set_jobs", id: job.id })
  return job
}

type Report = OutputOf<(typeof jobTable)["getQuestionSetShadowReport"]>["questions"]

/** Agreement, kappa and confusion, by question. `cells` in the order of the store: those of one comparison stand together. */
function shadowReport(cells: readonly ShadowCell[]): Report {
  const byComparison = Map.groupBy(cells, ({ question, version, shadowVersion, shadowModel }) =>
    JSON.stringify([question, version, shadowVersion, shadowModel]),
  )
  return [...byComparison.values()].flatMap((own) => {
    const [first] = own
    return first ? [compared(first, own)] : []
  })
}

function compared(
  { question, version, shadowVersion, shadowModel }: ShadowCell,
  cells: readonly ShadowCell[],
): Report[number] {
  const answers = sumOf(cells)
  const flips = sumOf(cells.filter(({ verdict, shadowVerdict }) => verdict !== shadowVerdict))
  const timesOf = (at: "firstAt" | "lastAt"): number[] => cells.map((cell) => cell[at].getTime())
  return {
    question,
    version,
    shadow_version: shadowVersion,
    shadow_model: shadowModel,
    answers,
    flips,
    agreement: (answers - flips) / answers,
    kappa: cohensKappa(
      // At most as many as there are results of a set.
      cells.flatMap(({ answers: times, verdict, shadowVerdict }) =>
        Array.from({ length: times }, (): LabelPair => [verdict, shadowVerdict]),
      ),
    ),
    confusion: cells.slice(0, shadowPairsMax).map((cell) => ({
      verdict: decodeVerdict(cell.verdict),
      shadow_verdict: decodeVerdict(cell.shadowVerdict),
      answers: cell.answers,
    })),
    mean_shift: cells.reduce((sum, { shiftSum }) => sum + shiftSum, 0) / answers,
    abstained: sumOf(cells.filter(({ verdict }) => verdict === abstained)),
    shadow_abstained: sumOf(cells.filter(({ shadowVerdict }) => shadowVerdict === abstained)),
    first_at: new Date(Math.min(...timesOf("firstAt"))).toISOString(),
    last_at: new Date(Math.max(...timesOf("lastAt"))).toISOString(),
  }
}

const sumOf = (cells: readonly ShadowCell[]): number => cells.reduce((sum, { answers }) => sum + answers, 0)
