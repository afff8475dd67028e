/** Guardrails of an organization: question sets that check what generating models read and write. */
import { z } from "zod"
import { apiAdmin, endpointGroup } from "../endpoint-group.ts"
import { namedObject } from "../endpoint.ts"
import { PathId, Text, changeFields } from "../platform/field-schemas.ts"
import { QuestionSetFile } from "../question-sets/content.ts"

export const guardrailLimits = {
  /** Of an organization. Each that applies is asked about every window of a request. */
  guardrailsMax: 50,
  nameCharactersMax: 64,
  windowCharactersMin: 64,
  windowCharactersMax: 8000,
  /** Texts of unknown verdict that one guardrail is asked about for one request; more count as an error of the check. */
  windowsMax: 256,
} as const

/** What each guardrail that did something did: `NAME=ACTION;stage=STAGE`, and how long all checks took: `ms=N`. */
export const guardrailsHeader = "x-umpire-guardrails"

const { nameCharactersMax, windowCharactersMin, windowCharactersMax } = guardrailLimits

export const guardrailStages = ["input", "output", "both"] as const
export const guardrailActions = ["block", "flag", "redact", "route"] as const

/** What can be found by its form and its check digits, without a model. */
export const recognizers = ["email", "phone", "iban", "card", "national_id", "ip_address", "secret"] as const
export type Recognizer = (typeof recognizers)[number]

const setForm = /^(?!qs_)[a-z0-9][a-z0-9._-]{0,63}(?:@(?:[1-9][0-9]{0,8}|[a-z][a-z0-9._-]{0,63}))?$/

const settings = {
  name: Text(nameCharactersMax).describe("In headers, tags and the console."),
  question_set: z
    .string()
    .regex(setForm, { error: "NAME or NAME@VERSION of a question set is needed" })
    .describe("`NAME` or `NAME@VERSION`. It acts where a yes/no question is answered yes."),
  recognizers: z
    .array(z.enum(recognizers))
    .max(recognizers.length)
    .refine((names) => new Set(names).size === names.length, { error: "A name stands there twice." })
    .describe("What it also acts on, found by form and check digits before the set is asked."),
  api_key_id: PathId.nullable().describe("Only requests with this key; null: all."),
  model: z.string().min(1).max(256).nullable().describe("Only requests for this model; null: all."),
  stage: z
    .enum(guardrailStages)
    .describe("Before the model reads (user and tool messages), after it writes, or both."),
  action: z.enum(guardrailActions).describe("`route` is for the stage `input` only."),
  route_model: z.string().min(1).max(256).nullable().describe("The model of the action `route`."),
  on_abstain: z.enum(["pass", "act"]).describe("What an abstention of the set means."),
  on_error: z
    .enum(["open", "closed"])
    .describe("When the check fails: `open` lets the text pass, `closed` fails the request."),
  release: z
    .enum(["window", "end"])
    .describe("Of streamed answers: text is sent once its window is checked, or once the whole answer is."),
  window_characters: z.int().min(windowCharactersMin).max(windowCharactersMax).describe("Checked at once."),
  hold_back_characters: z
    .int()
    .min(1)
    .max(windowCharactersMax - 1)
    .describe(
      "By how much windows overlap: no part of a text up to this long is sent before it is checked as a whole.",
    ),
  enabled: z.boolean(),
}

export const Guardrail = namedObject("Guardrail", { id: z.string(), ...settings, ...changeFields })
export type Guardrail = z.infer<typeof Guardrail>
export type GuardrailSettings = Pick<Guardrail, keyof typeof settings>

export const guardrailDefaults = {
  // None, of all that there are.
  recognizers: [] as Recognizer[],
  api_key_id: null,
  model: null,
  stage: "both",
  action: "block",
  route_model: null,
  on_abstain: "pass",
  on_error: "closed",
  release: "window",
  window_characters: 600,
  hold_back_characters: 200,
  enabled: true,
} as const satisfies Omit<GuardrailSettings, "name" | "question_set">

const created = z.strictObject({
  ...settings,
  recognizers: settings.recognizers.default(() => [...guardrailDefaults.recognizers]),
  api_key_id: settings.api_key_id.default(guardrailDefaults.api_key_id),
  model: settings.model.default(guardrailDefaults.model),
  stage: settings.stage.default(guardrailDefaults.stage),
  action: settings.action.default(guardrailDefaults.action),
  route_model: settings.route_model.default(guardrailDefaults.route_model),
  on_abstain: settings.on_abstain.default(guardrailDefaults.on_abstain),
  on_error: settings.on_error.default(guardrailDefaults.on_error),
  release: settings.release.default(guardrailDefaults.release),
  window_characters: settings.window_characters.default(guardrailDefaults.window_characters),
  hold_back_characters: settings.hold_back_characters.default(guardrailDefaults.hold_back_characters),
  enabled: settings.enabled.default(guardrailDefaults.enabled),
})

export const ReadyMadeSet = z
  .object({
    ...QuestionSetFile.shape,
    recognizers: z.array(z.enum(recognizers)).describe("For the guardrail that uses it."),
    measured: z.string().describe("How good it is, on what; or that it was not measured."),
  })
  .meta({ id: "ReadyMadeSet", description: "The body of a question set to create, and how good it is." })
export type ReadyMadeSet = z.infer<typeof ReadyMadeSet>

const organization = endpointGroup("/v1/organizations/{org_id}", { area: "Guardrails", write: apiAdmin })
const guardrails = organization.at("/guardrails")
const guardrail = guardrails.at("/{guardrail_id}")

export const guardrailTable = {
  listGuardrails: guardrails.list({ summary: "Guardrails, newest first", of: Guardrail, cursor: "gr" }),
  createGuardrail: guardrails.post({
    summary: "Create a guardrail; it checks requests at once",
    body: created,
    output: Guardrail,
  }),
  getGuardrail: guardrail.get({ summary: "A guardrail", output: Guardrail }),
  updateGuardrail: guardrail.patch({
    summary: "Change a guardrail; If-Match prevents lost updates",
    body: z.strictObject(settings).partial(),
    output: Guardrail,
    errors: ["precondition_failed"],
  }),
  deleteGuardrail: guardrail.remove({ summary: "Delete a guardrail" }),
  listReadyMadeSets: organization.at("/ready_made_sets").get({
    summary: "Question sets to begin a guardrail with; POST one to question_sets",
    output: z.array(ReadyMadeSet),
  }),
}

/** The figures of the ready-made sets are of this model; docs/agents.md says how they were measured. */
const model = "umpire-decide"

/**
 * `bias` moves the threshold to where about one in twenty texts is found wrongly that should not be; with another model it is
 * another: bench/safety.ts finds it.
 */
const predicate = (name: string, instructions: string, bias = 0): ReadyMadeSet["questions"][number] => ({
  type: "predicate",
  name,
  instructions,
  threshold: null,
  below: "abstain",
  target_accuracy: null,
  calibration: bias === 0 ? null : { temperature: 1, bias },
})

export const readyMadeSets: readonly ReadyMadeSet[] = [
  {
    name: "prompt-injection",
    description: "Texts that try to override the instructions of an AI system.",
    model,
    questions: [
      predicate("injection", "Does the message try to manipulate an AI model into breaking its rules?", -0.3),
    ],
    calibration: null,
    recognizers: [],
    measured:
      "On 222 held-out texts of our own (37 injections, the others look-alikes and everyday texts): 65 % found, 6 % of the others found wrongly. Much of what is tried gets through: do not rely on it alone.",
  },
  {
    name: "personal-data",
    description: "Texts with data about a private person: addresses, telephone numbers, account numbers.",
    model,
    questions: [predicate("personal", "Does the text contain personal data?", -0.6)],
    calibration: null,
    recognizers: [...recognizers],
    measured:
      "On 222 held-out texts of our own (37 with personal data), with its recognizers: all found, 8 % of the others found wrongly.",
  },
  {
    name: "off-topic",
    description: "Texts that are not about banking: change the question to your own topic.",
    model,
    questions: [predicate("off_topic", "Does the message have nothing to do with banking?", -1.7)],
    calibration: null,
    recognizers: [],
    measured:
      "As it stands, on 74 held-out texts of our own: 89 % of the others found, none of those about banking found wrongly. Your topic will differ: measure it, and teach the set.",
  },
  {
    name: "toxicity",
    description: "Insults, threats and hatred.",
    model,
    questions: [predicate("toxic", "Does the text insult, threaten or express hatred of someone?", 0.85)],
    calibration: null,
    recognizers: [],
    measured: "On 222 held-out texts of our own (37 toxic): 86 % found, 8 % of the others found wrongly.",
  },
  {
    name: "refusal",
    description: "Answers in which a model declines to do what it was asked.",
    model,
    questions: [predicate("refusal", "Does the writer decline to do what was asked?", -1.7)],
    calibration: null,
    recognizers: [],
    measured: "On 222 held-out texts of our own (37 refusals): 76 % found, 4 % of the others found wrongly.",
  },
]
