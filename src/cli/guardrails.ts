/** `umpire guardrails`: which question sets check what models read and write. */
import type { Client } from "../contract/client.ts"
import {
  type Guardrail,
  type Recognizer,
  guardrailActions,
  guardrailStages,
  recognizers,
} from "../contract/guardrails/guardrails.ts"
import { connectApi } from "./api-client.ts"
import { type CliContext, type Command, UsageError, oneOf, show, text } from "./command.ts"
import { apiHelp, apiOptions } from "./server-options.ts"
import { drawTable, printable } from "./table.ts"

export const guardrails: Command = {
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
    name: { type: "string" },
    stage: { type: "string" },
    action: { type: "string" },
    recognize: { type: "string" },
    "route-model": { type: "string" },
    "key-id": { type: "string" },
    model: { type: "string" },
    "on-error": { type: "string" },
    "on-abstain": { type: "string" },
    release: { type: "string" },
    ...apiOptions,
  },
  optionHelp: {
    name: "what it is called (the set's name)",
    stage: `${guardrailStages.join(", ")} (default both)`,
    action: `${guardrailActions.join(", ")} (default block)`,
    recognize: `what it also finds by its form, with commas: all, none, ${recognizers.join(", ")} (as the ready-made set says)`,
    "route-model": "the model of --action route",
    "key-id": "only requests with this API key",
    model: "only requests for this model",
    "on-error": "open or closed (default closed): what a failed check means",
    "on-abstain": "pass or act (default pass): what an abstention means",
    release: "window or end (default window): when checked text of a stream is sent",
    ...apiHelp,
    key: "the API key, with api-admin to change anything; better given as UMPIRE_API_KEY",
  },
  run: async (context) => await run(context),
}

async function run(context: CliContext): Promise<number> {
  const [action = "list", subject] = context.positionals
  const needsSubject = ["add", "enable", "disable", "remove"].includes(action)
  if (!needsSubject && action !== "list" && action !== "sets")
    throw new UsageError("say list, sets, add, enable, disable or remove")
  if (needsSubject && subject === undefined)
    throw new UsageError(action === "add" ? "which question set?" : "which guardrail? list shows their ids")
  const { client, organizationId: org_id } = await connectApi(context)
  const at = { org_id, guardrail_id: subject ?? "" }
  switch (action) {
    case "sets":
      return show(context, await client.listReadyMadeSets({ params: { org_id } }), (sets) =>
        drawSets(sets as never),
      )
    case "add": {
      const guardrail = await add(context, client, org_id, subject ?? "")
      return show(context, guardrail, () => `${guardrail.name} is active: ${guardrail.id}\n`)
    }
    case "enable":
    case "disable": {
      const enabled = action === "enable"
      const guardrail = await client.updateGuardrail({ params: at, body: { enabled } })
      return show(context, guardrail, () => `${guardrail.name} is ${enabled ? "active" : "disabled"}\n`)
    }
    case "remove":
      await client.deleteGuardrail({ params: at })
      return show(context, { id: subject }, () => `${subject} is removed\n`)
    default: {
      const { data } = await client.listGuardrails({ params: { org_id }, query: { limit: 200 } })
      return show(context, data, () => drawGuardrails(data))
    }
  }
}

async function add(context: CliContext, client: Client, org_id: string, set: string): Promise<Guardrail> {
  const [name = set] = set.split("@")
  // Read before the set is created.
  const given = settingsOf(context)
  const made = (await client.listReadyMadeSets({ params: { org_id } })).find((one) => one.name === name)
  if (made && !(await hasSet(client, org_id, name))) {
    const { measured, recognizers: _, ...body } = made
    await client.createQuestionSet({ params: { org_id }, body })
    context.stderr.write(`${name} is created. ${measured}\n`)
  }
  const found = recognizersOf(text(context, "recognize")) ?? made?.recognizers ?? []
  const settings = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))
  const body = { name: text(context, "name") ?? name, question_set: set, recognizers: found, ...settings }
  return await client.createGuardrail({ params: { org_id }, body })
}

const settingsOf = (context: CliContext) => ({
  stage: oneOf(context, "stage", guardrailStages),
  action: oneOf(context, "action", guardrailActions),
  route_model: text(context, "route-model"),
  api_key_id: text(context, "key-id"),
  model: text(context, "model"),
  on_error: oneOf(context, "on-error", ["open", "closed"]),
  on_abstain: oneOf(context, "on-abstain", ["pass", "act"]),
  release: oneOf(context, "release", ["window", "end"]),
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

function drawGuardrails(rows: readonly Guardrail[]): string {
  if (rows.length === 0) return "No guardrails. umpire guardrails sets lists ready-made question sets.\n"
  const lines = rows.map(({ id, name, question_set, stage, action, api_key_id, model, enabled, ...row }) => [
    id,
    printable(name),
    row.recognizers.length === 0 ? question_set : `${question_set} +${row.recognizers.length}`,
    stage,
    action,
    [api_key_id, model].filter((one) => one !== null).join(" ") || "everything",
    enabled ? "active" : "disabled",
  ])
  return `${drawTable(["id", "name", "set", "stage", "action", "for", "state"], lines)}\n`
}

const drawSets = (sets: readonly { name: string; description: string; measured: string }[]): string =>
  `${sets.map(({ name, description, measured }) => `${name}\n  ${description}\n  ${measured}`).join("\n")}\n`
