/** `umpire orgs`: makes, lists, limits and deletes organizations. */
import {
  type CliContext,
  type Command,
  UsageError,
  numberOf,
  oneOf,
  show,
  text,
  texts,
  wholeNumbersFrom,
} from "./command.ts"
import { rateMax } from "./key-limits.ts"
import type { Operate } from "./operator.ts"
import { drawTable } from "./table.ts"

interface ListedOrganization {
  readonly id: string
  readonly name: string
  readonly billing_account_id: string
  readonly members: number
}

export const orgs = (operate: (context: CliContext) => Operate): Command => ({
  usage: [
    "umpire orgs create --name Acme --owner ada@example.com [--billing-account ba_...]",
    "umpire orgs list",
    "umpire orgs limit org_... [--requests-per-minute 600] [--burst 100] [--region paris ...] [--every-region]",
    "umpire orgs sso org_... [--domain example.com ...] [--group staff ...] [--role member] [--required | --not-required]",
    "umpire orgs delete org_...",
  ],
  options: {
    name: { type: "string", short: "n" },
    owner: { type: "string" },
    "billing-account": { type: "string" },
    "requests-per-minute": { type: "string" },
    burst: { type: "string" },
    region: { type: "string", multiple: true },
    "every-region": { type: "boolean" },
    domain: { type: "string", multiple: true },
    group: { type: "string", multiple: true },
    role: { type: "string" },
    required: { type: "boolean" },
    "not-required": { type: "boolean" },
    json: { type: "boolean" },
  },
  optionHelp: {
    name: "name of the organization",
    owner: "email address of its primary owner; a user is created if there is none",
    "billing-account": "pay from this account instead of a new one",
    "requests-per-minute": "rate limit for each of its principals",
    burst: "requests allowed at once",
    region: "limit it to this region; may be repeated",
    "every-region": "remove the limit to regions",
    domain:
      "who signs in with single sign-on and such an address becomes a member; may be repeated; none removes all",
    group: "whom the provider counts to this group becomes a member; may be repeated; none removes all",
    role: "role of those who join so: member or owner",
    required: "refuse sessions that began without single sign-on",
    "not-required": "accept every session again",
    json: "print JSON",
  },
  run: async (context) => await run(context, operate(context)),
})

async function run(context: CliContext, operate: Operate): Promise<number> {
  const [action, id] = context.positionals
  switch (action) {
    case "create":
      return show(context, await operate("orgs.create", newOrganization(context)), drawCreated)
    case "list":
      return show(context, await operate("orgs.list", {}), drawList)
    case "limit":
      if (!id) throw new UsageError("which organization? umpire orgs limit org_...")
      return show(context, await operate("orgs.update", limits(context, id)), () => `${id} is limited.\n`)
    case "sso":
      if (!id) throw new UsageError("which organization? umpire orgs sso org_...")
      return show(context, await operate("orgs.sso", singleSignOn(context, id)), drawSso)
    case "delete":
      if (!id) throw new UsageError("which organization? umpire orgs delete org_...")
      return show(context, await operate("orgs.delete", { id }), () => `${id} is deleted.\n`)
    default:
      throw new UsageError("say create, list, limit, sso or delete")
  }
}

function newOrganization(context: CliContext): Record<string, unknown> {
  const name = text(context, "name")
  const owner = text(context, "owner")
  if (!name || !owner)
    throw new UsageError("a name and an owner are needed: --name Acme --owner ada@example.com")
  const account = text(context, "billing-account")
  return { name, owner, ...(account === undefined ? {} : { billing_account: account }) }
}

function limits(context: CliContext, id: string): Record<string, unknown> {
  const perMinute = numberOf(context, "requests-per-minute", wholeNumbersFrom(1, rateMax))
  const burst = numberOf(context, "burst", wholeNumbersFrom(1, rateMax))
  const regions = texts(context, "region")
  const every = context.values["every-region"] === true
  return {
    id,
    ...(perMinute === undefined ? {} : { requests_per_minute: perMinute }),
    ...(burst === undefined ? {} : { burst }),
    ...(regions.length > 0 || every ? { regions: every ? [] : regions } : {}),
  }
}

function singleSignOn(context: CliContext, id: string): Record<string, unknown> {
  const named = (option: string): string[] => texts(context, option).filter((one) => one !== "none")
  const role = oneOf(context, "role", ["member", "owner"])
  const isRequired = context.values["required"] === true
  return {
    id,
    ...(texts(context, "domain").length === 0 ? {} : { email_domains: named("domain") }),
    ...(texts(context, "group").length === 0 ? {} : { groups: named("group") }),
    ...(role === undefined ? {} : { role }),
    ...(isRequired || context.values["not-required"] === true ? { required: isRequired } : {}),
  }
}

const listed = (names: string[]): string => names.join(", ") || "none"

function drawSso(result: unknown): string {
  // What orgs.sso answers.
  const policy = result as { required: boolean; email_domains: string[]; groups: string[]; role: string }
  return [
    `domains   ${listed(policy.email_domains)}`,
    `groups    ${listed(policy.groups)}`,
    `role      ${policy.role}`,
    `required  ${policy.required ? "yes" : "no"}`,
    "",
  ].join("\n")
}

function drawCreated(result: unknown): string {
  // What orgs.create answers.
  const { id, url } = result as { id: string; url: string | null }
  const first = url === null ? "" : ` Its owner signs in once at ${url}`
  return `${id} is ready.${first}\n`
}

function drawList(result: unknown): string {
  // What orgs.list answers.
  const rows = (result as ListedOrganization[]).map((one) => [
    one.id,
    one.name,
    one.billing_account_id,
    String(one.members),
  ])
  return drawTable(["organization", "name", "billing account", "members"], rows)
}
