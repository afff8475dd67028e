/** Question sets of an organization: saved questions with versions and labels. */
import { z } from "zod"
import { classificationErrors } from "../classification.ts"
import { AnswerVerdict, DecisionAnswer, DecisionInput, DecisionUsage } from "../decisions.ts"
import { apiWrite, endpointGroup, inference } from "../endpoint-group.ts"
import { Document, endpoint } from "../endpoint.ts"
import { Datetime, Text, UsdText } from "../platform/field-schemas.ts"
import {
  Description,
  QuestionSetFile,
  SetName,
  SetQuestion,
  contentShape,
  questionSetLimits,
} from "./content.ts"

const noteCharactersMax = 500
const Note = Text(noteCharactersMax)

/** Begins with a letter, so that a number is always a version. */
const LabelName = z.string().regex(/^[a-z][a-z0-9._-]{0,63}$/)
/** The number of a version, or a label: `latest`, `production` or one's own. */
export const VersionReference = z
  .string()
  .regex(/^(?:[1-9][0-9]{0,8}|[a-z][a-z0-9._-]{0,63})$/)
  .meta({ description: "A version's number, `latest`, `production` or another label." })

const versionNumber = z.int().min(1).max(999_999_999)

const SetLabel = z
  .object({ label: z.string(), version: versionNumber, updated_at: Datetime })
  .meta({ id: "QuestionSetLabel" })

const summary = {
  id: z.string(),
  name: z.string(),
  description: z.string(),
  model: z.string().describe("Of the latest version."),
  question_names: z.array(z.string()).describe("Of the latest version."),
  latest_version: versionNumber,
  production_version: versionNumber
    .nullable()
    .describe("What `set:NAME` answers with; null: the latest does."),
  outdated: z
    .boolean()
    .describe(
      "A question of the latest version was taught on another version of the model than answers today. Where the model that it was taught on is still there, that one answers until the set is taught again.",
    ),
  created_by: z.string().nullable(),
  created_at: Datetime,
  updated_at: Datetime,
  revision: z.int().describe("Counts the changes; `If-Match` takes it."),
}

export const QuestionSetItem = z
  .object({ ...summary, examples: z.int().describe("How many labelled rows it has.") })
  .meta({ id: "QuestionSetItem" })
export type QuestionSetItem = z.infer<typeof QuestionSetItem>

export const ShadowSettings = z
  .strictObject({
    version: versionNumber.nullable().default(null).describe("Null: the version that answers the request."),
    model: z.string().min(1).max(256).nullable().default(null).describe("Null: the model of the version."),
    share: z.number().gt(0).max(1).describe("Of the requests for the published version."),
    cost_max_day_usd: UsdText.default("1").describe(
      "What it may cost in a day (UTC); beyond it nothing more is asked until the next.",
    ),
  })
  .meta({
    id: "QuestionSetShadow",
    description: "What answers beside the published version, unseen by callers.",
  })
export type ShadowSettings = z.infer<typeof ShadowSettings>

export const QuestionSet = z
  .object({
    ...summary,
    labels: z.array(SetLabel),
    questions: z.array(SetQuestion).describe("Of the latest version."),
    calibration: contentShape.calibration,
    hash: z.string().describe("Of the latest version."),
    shadow: ShadowSettings.nullable(),
    counts: z.object({ examples: z.int(), cases: z.int() }),
    last_check: z
      .object({ job_id: z.string(), state: z.string() })
      .nullable()
      .describe(
        "Publishing a version or changing the model checks the frozen cases, unless ten jobs are open.",
      ),
  })
  .meta({ id: "QuestionSet" })
export type QuestionSet = z.infer<typeof QuestionSet>

const versionSummary = {
  version: versionNumber,
  hash: z.string().describe("SHA-256 of the content: equal contents have equal hashes."),
  note: z.string(),
  labels: z.array(z.string()),
  created_by: z.string().nullable(),
  created_at: Datetime,
}
export const QuestionSetVersionItem = z.object(versionSummary).meta({ id: "QuestionSetVersionItem" })
export type QuestionSetVersionItem = z.infer<typeof QuestionSetVersionItem>
export const QuestionSetVersion = z
  .object({ ...versionSummary, ...contentShape })
  .meta({ id: "QuestionSetVersion", description: "Never changes once it is made." })
export type QuestionSetVersion = z.infer<typeof QuestionSetVersion>

export const getQuestionSetSchema = endpoint({
  method: "GET",
  path: "/schemas/question-set.json",
  area: "Service",
  surface: "service",
  summary: "The JSON Schema of a question set's YAML file, for editors",
  access: { principals: [] },
  output: z.record(z.string(), z.unknown()),
})

/** For editors, which complete and check a file by it. */
export function questionSetSchema(): Record<string, unknown> {
  const schema = z.toJSONSchema(QuestionSetFile, { io: "input", unrepresentable: "any" })
  return { title: "Umpire question set", ...schema }
}

const sets = endpointGroup("/v1/organizations/{org_id}/question_sets", {
  area: "Question sets",
  write: apiWrite,
})
export const set = sets.at("/{set_id}")

export const setTable = {
  listQuestionSets: sets.list({ summary: "Question sets, newest first", of: QuestionSetItem, cursor: "qs" }),
  createQuestionSet: sets.post({
    summary: "Create a question set; its content becomes version 1",
    body: QuestionSetFile,
    bodyBytesMax: questionSetLimits.contentBytesMax,
    output: QuestionSet,
  }),
  importQuestionSet: sets.at("/import").post({
    summary: "Create or change the set that a YAML file names; the same content again changes nothing",
    body: z.strictObject({
      yaml: z.string().min(1).max(questionSetLimits.fileCharactersMax),
      note: Note.optional(),
    }),
    bodyBytesMax: 2 * questionSetLimits.contentBytesMax,
    output: z
      .object({ set: QuestionSet, result: z.enum(["created", "changed", "unchanged"]) })
      .meta({ id: "ImportedQuestionSet" }),
  }),
  getQuestionSet: set.get({
    summary: "A question set with the content of its latest version",
    output: QuestionSet,
  }),
  updateQuestionSet: set.patch({
    summary: "Change a question set; a changed content becomes a new version; If-Match prevents lost updates",
    body: z.strictObject({
      name: SetName.optional(),
      description: Description.optional(),
      model: contentShape.model.optional(),
      questions: contentShape.questions.optional(),
      calibration: contentShape.calibration.unwrap().optional(),
      note: Note.optional().describe("Why, for the list of versions."),
      shadow: ShadowSettings.nullish().describe("Null ends the shadow."),
    }),
    bodyBytesMax: questionSetLimits.contentBytesMax,
    output: QuestionSet,
    errors: ["precondition_failed"],
  }),
  deleteQuestionSet: set.remove({
    summary: "Delete a question set with its versions, examples, cases and results",
  }),
  listQuestionSetVersions: set
    .at("/versions")
    .list({ summary: "Versions, newest first", of: QuestionSetVersionItem, cursor: /^v[1-9][0-9]{0,8}$/ }),
  getQuestionSetVersion: set
    .at("/versions/{version}", { version: VersionReference })
    .get({ summary: "One version, by its number or a label", output: QuestionSetVersion }),
  compareQuestionSetVersions: set.at("/difference").get({
    summary: "What changed from one version to another",
    query: z.object({ from: VersionReference.default("production"), to: VersionReference.default("latest") }),
    output: z
      .object({
        from: versionNumber,
        to: versionNumber,
        changes: z.array(
          z.object({
            path: z.string().describe("A field, or `questions.NAME.FIELD`."),
            before: z.unknown(),
            after: z.unknown(),
          }),
        ),
      })
      .meta({ id: "QuestionSetDifference" }),
  }),
  putQuestionSetLabel: set.at("/labels/{label}", { label: LabelName }).put({
    summary: "Point a label at a version; `production` publishes it",
    body: z.strictObject({ version: versionNumber }),
    output: QuestionSet,
  }),
  deleteQuestionSetLabel: set
    .at("/labels/{label}", { label: LabelName })
    .remove({ summary: "Remove a label" }),
  exportQuestionSet: set.at("/file").get({
    summary: "A version as a YAML file, to be kept in git",
    query: z.object({ version: VersionReference.default("latest") }),
    output: z.instanceof(Document),
    produces: "application/yaml; charset=utf-8",
  }),
  exportTaughtQuestionSet: set.at("/taught").get({
    summary: "A version with what was taught, for programs that decide without a server",
    query: z.object({ version: VersionReference.default("production") }),
    output: z.instanceof(Document),
    produces: "application/json",
  }),
}

/** Which version of which set answered: `NAME@7`. */
export const setHeader = "x-umpire-question-set"
/** The names of the questions that the set abstains from, separated by commas; absent when there are none. */
export const abstainedHeader = "x-umpire-abstained"

/** `true`: the request tries the set, and counts neither in its monitoring nor in shadows, and is not for review. */
export const trialHeader = "x-umpire-trial"
/** The same of all lines of a batch, in its metadata. */
export const trialMetadata = { kind: "evaluation" } as const

const decideBytesMax = 1024 * 1024

export const SetVerdict = z
  .object({
    name: z.string(),
    verdict: AnswerVerdict.shape.value,
    ...AnswerVerdict.omit({ value: true }).shape,
    answer: DecisionAnswer,
  })
  .meta({ id: "QuestionSetVerdict" })
export type SetVerdict = z.infer<typeof SetVerdict>

export const QuestionSetDecision = z
  .object({ answers: z.array(SetVerdict), version: z.int(), model: z.string(), usage: DecisionUsage })
  .meta({ id: "QuestionSetDecision" })
export type QuestionSetDecision = z.infer<typeof QuestionSetDecision>

export const decideQuestionSet = set.at("/decide").post({
  summary: "Ask a question set about one text; charged as POST /v1/decisions",
  access: inference,
  body: z.strictObject({
    input: DecisionInput,
    questions: z
      .array(z.string().max(64))
      .max(questionSetLimits.questionsMax)
      .default([])
      .describe("Names of the questions to ask; none: all."),
    version: VersionReference.optional().describe("Without it the published version, or else the latest."),
  }),
  bodyBytesMax: decideBytesMax,
  callSource: "decisions",
  output: QuestionSetDecision,
  errors: classificationErrors,
})
