/** `umpire identity`: lists identity providers, and says which step accepts or refuses a token or certificate, and why. */
import { readFile } from "node:fs/promises"
import { resolve } from "node:path"
import { text as readAll } from "node:stream/consumers"
import type { ProviderTestResult } from "../contract/identity.ts"
import {
  type CliContext,
  type Command,
  UsageError,
  organizationHelp,
  organizationOptions,
  organizationScope,
  show,
  text,
} from "./command.ts"
import { unreadable } from "./given-files.ts"
import type { Operate } from "./operator.ts"
import { drawTable } from "./table.ts"

interface ListedProvider {
  readonly id: string
  readonly name: string
  readonly active: boolean
  readonly type: string
  readonly policy_revision: number
}

const exitRefused = 1

export const identity = (operate: (context: CliContext) => Operate): Command => ({
  usage: [
    "umpire identity list [--organization org_...]",
    "umpire identity test wi_... --token token.jwt      (- reads standard input)",
    "umpire identity test wi_... --certificate chain.pem",
  ],
  options: {
    token: { type: "string" },
    certificate: { type: "string" },
    ...organizationOptions,
  },
  optionHelp: {
    token: "a file with the JWT that a workload would exchange",
    certificate: "a PEM file, the workload's own certificate first",
    ...organizationHelp,
  },
  run: async (context) => await run(context, operate(context)),
})

async function run(context: CliContext, operate: Operate): Promise<number> {
  const [action, id] = context.positionals
  const scope = organizationScope(context)
  switch (action) {
    case "list":
      return show(context, await operate("identity.list", scope), drawList)
    case "test": {
      if (!id) throw new UsageError("which provider? umpire identity test wi_... --token token.jwt")
      const result = await operate("identity.test", { ...scope, id, ...(await readEvidence(context)) })
      show(context, result, drawResult)
      // What identity.test answers.
      return (result as ProviderTestResult).accepted ? 0 : exitRefused
    }
    default:
      throw new UsageError("say list or test")
  }
}

async function readEvidence(context: CliContext): Promise<Record<string, string>> {
  const token = text(context, "token")
  const certificate = text(context, "certificate")
  if ((token === undefined) === (certificate === undefined))
    throw new UsageError("give either --token or --certificate")
  if (token !== undefined) return { subject_token: (await read(context, token)).trim() }
  return { certificate_chain: await read(context, certificate ?? "") }
}

async function read(context: CliContext, file: string): Promise<string> {
  if (file === "-") return await readAll(context.stdin)
  return await readFile(resolve(context.workingDirectory, file), "utf8").catch(unreadable(file))
}

function drawResult(result: unknown): string {
  const { accepted, steps, attributes, permissions } = result as ProviderTestResult
  const marks = { passed: "ok     ", refused: "refused", not_reached: "-      " }
  const width = Math.max(...steps.map(({ step }) => step.length))
  const lines = steps.map(({ step, outcome, message }) =>
    `${marks[outcome]}  ${step.padEnd(width)}  ${message}`.trimEnd(),
  )
  const known = attributes ? [`attributes: ${JSON.stringify(attributes)}`] : []
  const verdict = accepted ? `accepted with ${permissions.join(", ")}` : "refused"
  return [...lines, ...known, verdict, ""].join("\n")
}

function drawList(result: unknown): string {
  // What identity.list answers.
  const rows = (result as ListedProvider[]).map((one) => [
    one.id,
    one.name,
    one.type,
    one.active ? "active" : "inactive",
    String(one.policy_revision),
  ])
  return drawTable(["provider", "name", "type", "state", "revision"], rows)
}
