/** `umpire orgs`: makes, lists, limits and deletes organizations. */
import type { z } from "zod"
import type { ListedOrganization } from "../contract/operator.ts"
import { operatorCommand, operates } from "./actions.ts"
import { type CliContext, flagOption, listOption, texts, valueOption } from "./command.ts"
import { columns } from "./table.ts"

const which = (action: string) => ({ org_id: `which organization? umpire orgs ${action} org_...` })
const ask = "a name and an owner are needed: --name Acme --owner ada@example.com"
const listed = (names: readonly string[]): string => names.join(", ") || "none"

export const orgs = operatorCommand({
  usage: [
    "umpire orgs create --name Acme --owner ada@example.com [--billing-account ba_...]",
    "umpire orgs list",
    "umpire orgs limit org_... [--requests-per-minute 600] [--burst 100] [--region paris ...] [--every-region]",
    "umpire orgs sso org_... [--domain example.com ...] [--group staff ...] [--role member] [--required | --not-required]",
    "umpire orgs delete org_...",
  ],
  options: {
    name: valueOption("name of the organization", "n"),
    owner: valueOption("email address of its primary owner; a user is created if there is none"),
    "billing-account": valueOption("pay from this account instead of a new one"),
    "requests-per-minute": valueOption("rate limit for each of its principals"),
    burst: valueOption("requests allowed at once"),
    region: listOption("limit it to this region; may be repeated"),
    "every-region": flagOption("remove the limit to regions"),
    domain: listOption(
      "who signs in with single sign-on and such an address becomes a member; may be repeated; none removes all",
    ),
    group: listOption(
      "whom the provider counts to this group becomes a member; may be repeated; none removes all",
    ),
    role: valueOption("role of those who join so: member or owner"),
    required: flagOption("refuse sessions that began without single sign-on"),
    "not-required": flagOption("accept every session again"),
  },
  actions: {
    create: operates("openOrganization", {
      fields: {
        name: { field: "name", ask },
        owner: { field: "owner", ask },
        "billing-account": "billing_account",
      },
      draw: ({ id, url }) => `${id} is ready.${url === null ? "" : ` Its owner signs in once at ${url}`}\n`,
    }),
    list: operates("listAllOrganizations", {
      draw: columns<z.infer<typeof ListedOrganization>>({
        organization: ({ id }) => id,
        name: ({ name }) => name,
        "billing account": ({ billing_account_id }) => billing_account_id,
        members: ({ members }) => String(members),
      }),
    }),
    limit: operates("limitOrganization", {
      args: which("limit"),
      fields: { "requests-per-minute": "requests_per_minute", burst: "burst", region: "regions" },
      input: ({ values }) => (values["every-region"] === true ? { regions: [] } : {}),
      draw: ({ id }) => `${id} is limited.\n`,
    }),
    sso: operates("changeSingleSignOn", {
      args: which("sso"),
      fields: { role: "role", required: "required" },
      input: (context) => ({
        ...namesOf(context, "domain", "email_domains"),
        ...namesOf(context, "group", "groups"),
        ...(context.values["not-required"] === true ? { required: false } : {}),
      }),
      draw: ({ email_domains, groups, role, required }) =>
        [
          `domains   ${listed(email_domains)}`,
          `groups    ${listed(groups)}`,
          `role      ${role}`,
          `required  ${required ? "yes" : "no"}`,
          "",
        ].join("\n"),
    }),
    delete: operates("deleteOrganization", {
      args: which("delete"),
      json: ({ org_id }) => ({ id: org_id, deleted: true }),
      draw: (_, { org_id }) => `${org_id} is deleted.\n`,
    }),
  },
})

/** `none` removes all. */
function namesOf(context: CliContext, option: string, field: string): Record<string, string[]> {
  const given = texts(context, option)
  return given.length === 0 ? {} : { [field]: given.filter((one) => one !== "none") }
}
