/** `umpire eval --calibrate`: fits a temperature and a bias to labelled rows, and saves them in a question set. */
import { type Client, ClientError } from "../contract/client.ts"
import { Fault } from "../contract/errors.ts"
import { SetName } from "../contract/question-sets/content.ts"
import type { QuestionSet } from "../contract/question-sets/sets.ts"
import {
  type Calibration,
  type LabelledMargins,
  fitCalibration,
  isAtBounds,
  meanLoss,
  uncalibrated,
} from "../scoring/calibration.ts"
import { connectApi } from "./api-client.ts"
import { type CliContext, UsageError } from "./command.ts"
import type { EvalRow, EvalSet } from "./eval-rows.ts"
import type { Operate } from "./operator.ts"

/** Two numbers fitted to fewer rows say more about the rows than about the model. */
export const calibrationRowsMin = 20

export const modelDefault = ({ environment }: CliContext): string =>
  environment["UMPIRE_MODEL"] ?? "umpire-decide"

interface CalibrationRequest {
  readonly name: string
  /** The models that options name. */
  readonly given: readonly string[]
  readonly sets: readonly EvalSet[]
}

/** Margins are not on the wire, so they come from the running server through the operator's socket. */
export async function calibrate(
  context: CliContext,
  operate: Operate,
  request: CalibrationRequest,
): Promise<number> {
  const { name } = request
  const rows = checkRequest(request)
  const target = await findTarget(context, operate, name)
  const model = modelOf(context, request, target.set)
  const labelled: LabelledMargins[] = []
  for (const row of rows) labelled.push(await labelledMargins(operate, model, row))
  const fitted = fit(labelled)
  const before = meanLoss(labelled, uncalibrated)
  const after = meanLoss(labelled, fitted)
  const saved = await save(target, { name, model, fitted })
  if (context.values["json"] === true)
    context.stdout.write(
      `${JSON.stringify({ name, ...fitted, log_loss_before: before, log_loss_after: after })}\n`,
    )
  else
    context.stdout.write(
      `${name}: temperature ${fitted.temperature.toFixed(3)}, bias ${fitted.bias.toFixed(3)}; log loss ${before.toFixed(3)} -> ${after.toFixed(3)} on ${rows.length} rows\n${saved}`,
    )
  return 0
}

function checkRequest({ name, given, sets }: CalibrationRequest): EvalRow[] {
  if (given.length > 1) throw new UsageError("--calibrate is about one model: give --model once")
  const named = SetName.safeParse(name)
  if (!named.success) throw new UsageError(`--calibrate takes a name of ${named.error.issues[0]?.message}`)
  const rows = sets.flatMap((set) => set.rows)
  if (rows.length < calibrationRowsMin)
    throw new UsageError(
      `--calibrate needs ${calibrationRowsMin} rows or more, better some hundred; there are ${rows.length}`,
    )
  return rows
}

interface Target {
  readonly client: Client
  readonly organizationId: string
  /** Null: it is to be made. */
  readonly set: QuestionSet | null
}

async function findTarget(context: CliContext, operate: Operate, set_id: string): Promise<Target> {
  // What status answers; it fails where no server runs on the data directory.
  const { url: local } = (await operate("status", null)) as { readonly url: string }
  const { url, client, organizationId } = await connectApi(context)
  // The ids of organizations differ between installations; gateways of one share them.
  await operate("models.virtual", { organization: organizationId }).catch((cause: unknown) => {
    if (!String(cause).includes("Cannot find the organization")) throw cause
    throw new UsageError(
      `${url} is another installation than the server on this data directory (${local}): margins would come from one and be saved in the other; give --url ${local}, with a key of it, or set UMPIRE_DATA_DIR`,
      { cause },
    )
  })
  const params = { org_id: organizationId, set_id }
  const set = await client.getQuestionSet({ params }).catch((error: unknown) => {
    if (error instanceof ClientError && error.status === 404) return null
    throw error
  })
  return { client, organizationId, set }
}

/** A set that exists is answered by its own model. */
function modelOf(context: CliContext, { name, given: [given] }: CalibrationRequest, set: QuestionSet | null) {
  if (set && given !== undefined && given !== set.model)
    throw new UsageError(
      `the question set ${name} asks ${set.model}: leave --model out, or name another set by --calibrate`,
    )
  return set?.model ?? given ?? modelDefault(context)
}

async function labelledMargins(operate: Operate, model: string, row: EvalRow): Promise<LabelledMargins> {
  // What classification.margins answers: one list per question.
  const [margins = []] = (await operate("classification.margins", {
    request: { model, input: row.text, questions: [row.question] },
  })) as number[][]
  if (row.question.type === "predicate")
    return { kind: "predicate", margins, right: row.gold === "yes" ? 0 : null }
  return { kind: "options", margins, right: row.classes.indexOf(row.gold) }
}

function fit(labelled: readonly LabelledMargins[]): Calibration {
  const fitted = fitCalibration(labelled)
  if (!isAtBounds(fitted)) return fitted
  const { temperature, bias } = fitted
  throw new Fault(
    "invalid_request",
    `Cannot fit a calibration: the best values are the most extreme ones that are tried (temperature ${temperature.toFixed(3)}, bias ${bias.toFixed(3)}), because the rows are too few or too easy; nothing was saved: label more rows, with some that the model gets wrong`,
  )
}

interface Fitted {
  readonly name: string
  readonly model: string
  readonly fitted: Calibration
}

const note = "umpire eval --calibrate"

async function save({ client, organizationId: org_id, set }: Target, { name, model, fitted }: Fitted) {
  const { temperature, bias } = fitted
  const calibration = {
    temperature: Number(temperature.toPrecision(6)),
    bias: Number(bias.toPrecision(6)),
  }
  if (set) {
    const params = { org_id, set_id: set.id }
    return changed(await client.updateQuestionSet({ params, body: { calibration, note } }))
  }
  // A set without questions calibrates those of the requests that name it.
  const yaml = JSON.stringify({ name, model, questions: [], calibration })
  await client.importQuestionSet({ params: { org_id }, body: { yaml, note } })
  return `Saved as a question set: requests name it as their model, set:${name}\n`
}

function changed({ name, latest_version, production_version, questions }: QuestionSet): string {
  const own = questions.filter(({ calibration, artefact }) => calibration ?? artefact)
  return [
    `Saved as version ${latest_version} of the question set ${name}; its questions stay as they were\n`,
    production_version === null || production_version === latest_version
      ? ""
      : `set:${name} goes on with version ${production_version} until version ${latest_version} is published\n`,
    own.length === 0
      ? ""
      : `Not for ${own.map((question) => question.name).join(", ")}: taught, or with a calibration of their own\n`,
  ].join("")
}
