/** `umpire identity`: lists identity providers, and says which step accepts or refuses a token or certificate, and why. */
import { readFile } from "node:fs/promises"
import { resolve } from "node:path"
import { text as readAll } from "node:stream/consumers"
import type { ProviderTestResult, WorkloadIdentityProvider } from "../contract/identity.ts"
import { operatorCommand, operates } from "./actions.ts"
import { type CliContext, UsageError, text, valueOption } from "./command.ts"
import { unreadable } from "./given-files.ts"
import { columns } from "./table.ts"

const exitRefused = 1

export const identity = operatorCommand({
  usage: [
    "umpire identity list [--organization org_...]",
    "umpire identity test wi_... --token token.jwt      (- reads standard input)",
    "umpire identity test wi_... --certificate chain.pem",
  ],
  options: {
    token: valueOption("a file with the JWT that a workload would exchange"),
    certificate: valueOption("a PEM file, the workload's own certificate first"),
  },
  inOrganization: true,
  actions: {
    list: operates("listWorkloadIdentityProviders", {
      draw: columns<WorkloadIdentityProvider>({
        provider: ({ id }) => id,
        name: ({ name }) => name,
        type: ({ config }) => config.type,
        state: ({ active }) => (active ? "active" : "inactive"),
        revision: ({ policy_revision }) => String(policy_revision),
      }),
    }),
    test: operates("testWorkloadIdentityProvider", {
      args: { provider_id: "which provider? umpire identity test wi_... --token token.jwt" },
      input: readEvidence,
      draw: drawResult,
      status: ({ accepted }) => (accepted ? 0 : exitRefused),
    }),
  },
})

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

function drawResult({ accepted, steps, attributes, permissions }: ProviderTestResult): string {
  const marks = { passed: "ok     ", refused: "refused", not_reached: "-      " }
  const width = Math.max(...steps.map(({ step }) => step.length))
  const lines = steps.map(({ step, outcome, message }) =>
    `${marks[outcome]}  ${step.padEnd(width)}  ${message}`.trimEnd(),
  )
  const known = attributes ? [`attributes: ${JSON.stringify(attributes)}`] : []
  const verdict = accepted ? `accepted with ${permissions.join(", ")}` : "refused"
  return [...lines, ...known, verdict, ""].join("\n")
}
