/** `umpire guardrails`: which question sets check what models read and write. */
import type { Client } from "../contract/client.ts"
import {
  type Guardrail,
  type Recognizer,
  guardrailActions,
  guardrailStages,
  recognizers,
} from "../contract/guardrails/guardrails.ts"
import { table } from "../contract/table.ts"
import { type Action, apiCommand, calls, readFields } from "./actions.ts"
import { UsageError, required, show, text, valueOption } from "./command.ts"
import { columns } from "./table.ts"

const args = { guardrail_id: "which guardrail? list shows their ids" }

const enable = (enabled: boolean): Action<Client> =>
  calls("updateGuardrail", {
    args,
    input: () => ({ enabled }),
    draw: ({ name }) => `${name} is ${enabled ? "active" : "disabled"}\n`,
  })

const add: Action<Client> = async (context, connect) => {
  const set = required(context.positionals[1], "which question set?")
  const [name = set] = set.split("@")
  // Read before the set is created.
  const settings = readFields(context, table.createGuardrail.body, {
    name: "name",
    stage: "stage",
    action: "action",
    "route-model": "route_model",
    "key-id": "api_key_id",
    model: "model",
    "on-error": "on_error",
    "on-abstain": "on_abstain",
    release: "release",
  })
  const recognized = recognizersOf(text(context, "recognize"))
  const { client, organizationId } = await connect()
  const params = { org_id: await organizationId() }
  const made = (await client.listReadyMadeSets({ params })).find((one) => one.name === name)
  if (made && !(await hasSet(client, params.org_id, name))) {
    const { measured, recognizers: _, ...body } = made
    await client.createQuestionSet({ params, body })
    context.stderr.write(`${name} is created. ${measured}\n`)
  }
  const body = { name, question_set: set, recognizers: recognized ?? made?.recognizers ?? [], ...settings }
  const guardrail = await client.createGuardrail({ params, body })
  return show(context, guardrail, () => `${guardrail.name} is active: ${guardrail.id}\n`)
}

const drawGuardrails = columns<Guardrail>({
  id: ({ id }) => id,
  name: ({ name }) => name,
  set: ({ question_set, recognizers: own }) =>
    own.length === 0 ? question_set : `${question_set} +${own.length}`,
  stage: ({ stage }) => stage,
  action: ({ action }) => action,
  for: ({ api_key_id, model }) => [api_key_id, model].filter((one) => one !== null).join(" ") || "everything",
  state: ({ enabled }) => (enabled ? "active" : "disabled"),
})

export const guardrails = apiCommand({
  usage: [
    "umpire guardrails list",
    "umpire guardrails sets",
    "umpire guardrails add prompt-injection --stage input --action block",
    "umpire guardrails add my-set --name pii --action redact --recognize email,phone --model umpire-chat",
    "umpire guardrails enable|disable|remove gr_...",
    "",
    "add takes the name of a question set; a ready-made one is created first where it is missing.",
  ],
  options: {
    name: valueOption("what it is called (the set's name)"),
    stage: valueOption(`${guardrailStages.join(", ")} (default both)`),
    action: valueOption(`${guardrailActions.join(", ")} (default block)`),
    recognize: valueOption(
      `what it also finds by its form, with commas: all, none, ${recognizers.join(", ")} (as the ready-made set says)`,
    ),
    "route-model": valueOption("the model of --action route"),
    "key-id": valueOption("only requests with this API key"),
    model: valueOption("only requests for this model"),
    "on-error": valueOption("open or closed (default closed): what a failed check means"),
    "on-abstain": valueOption("pass or act (default pass): what an abstention means"),
    release: valueOption("window or end (default window): when checked text of a stream is sent"),
    key: valueOption("the API key, with api-admin to change anything; better given as UMPIRE_API_KEY"),
  },
  actionDefault: "list",
  actions: {
    list: calls("listGuardrails", {
      draw: (found) =>
        found.length === 0
          ? "No guardrails. umpire guardrails sets lists ready-made question sets.\n"
          : drawGuardrails(found),
    }),
    sets: calls("listReadyMadeSets", {
      draw: (sets) =>
        `${sets.map(({ name, description, measured }) => `${name}\n  ${description}\n  ${measured}`).join("\n")}\n`,
    }),
    add,
    enable: enable(true),
    disable: enable(false),
    remove: calls("deleteGuardrail", {
      args,
      json: ({ guardrail_id }) => ({ id: guardrail_id }),
      draw: (_, { guardrail_id }) => `${guardrail_id} is removed\n`,
    }),
  },
})

function recognizersOf(given: string | undefined): Recognizer[] | undefined {
  if (given === undefined || given === "none") return given === undefined ? undefined : []
  if (given === "all") return [...recognizers]
  return given.split(",").map((name) => {
    const found = recognizers.find((one) => one === name.trim())
    if (!found) throw new UsageError(`--recognize takes all, none or some of ${recognizers.join(", ")}`)
    return found
  })
}

async function hasSet(client: Client, org_id: string, set_id: string): Promise<boolean> {
  try {
    await client.getQuestionSet({ params: { org_id, set_id } })
    return true
  } catch (error) {
    if (error instanceof Error && "status" in error && error.status === 404) return false
    throw error
  }
}
