/** `umpire keys`: makes, lists and revokes API keys. */
import { z } from "zod"
import { permissions } from "../contract/access.ts"
import {
  type CliContext,
  type Command,
  UsageError,
  manyOf,
  organizationScope,
  show,
  text,
} from "./command.ts"
import { type ListedBudget, drawBudgets, givenLimits, limitHelp, limitOptions } from "./key-limits.ts"
import type { Operate } from "./operator.ts"
import { drawTable } from "./table.ts"
import { drawWelcome } from "./welcome.ts"

interface ListedKey {
  readonly id: string
  readonly name: string
  readonly permissions: readonly string[]
  readonly last_used_at: string | null
  readonly expires_at: string | null
  readonly budgets: readonly ListedBudget[]
}

export const keys = (operate: (context: CliContext) => Operate): Command => ({
  usage: [
    "umpire keys create --name ci [--permission inference ...] [--organization org_...] [--expires 2027-01-01T00:00:00Z]",
    "umpire keys list",
    "umpire keys limit key_... [--budget month=20 ...] [--requests-per-minute 60] [--tokens-per-minute 10000] [--model ...] [--network 10.0.0.0/8 ...]",
    "umpire keys revoke key_...",
    "umpire keys first",
  ],
  options: {
    name: { type: "string", short: "n" },
    permission: { type: "string", multiple: true },
    organization: { type: "string", short: "o" },
    expires: { type: "string" },
    ...limitOptions,
    json: { type: "boolean" },
  },
  optionHelp: {
    name: "what the key is for",
    permission: `one of ${permissions.join(", ")}; may be repeated; defaults to inference`,
    organization: "the organization, where there are several",
    expires: "when the key expires, such as 2027-01-01T00:00:00Z; defaults to never",
    ...limitHelp,
    json: "print JSON",
  },
  run: async (context) => await run(context, operate(context)),
})

async function run(context: CliContext, operate: Operate): Promise<number> {
  const [action, id] = context.positionals
  const scope = organizationScope(context)
  switch (action) {
    case "create":
      return show(context, await operate("keys.create", { ...scope, ...newKey(context) }), drawCreated)
    case "list":
      return show(context, await operate("keys.list", scope), drawList)
    case "limit":
      if (!id) throw new UsageError("which key? umpire keys limit key_...")
      return show(context, await operate("keys.limit", { ...scope, id, ...givenLimits(context) }), (key) =>
        drawList([key]),
      )
    case "revoke":
      if (!id) throw new UsageError("which key? umpire keys revoke key_...")
      return show(context, await operate("keys.revoke", { ...scope, id }), () => `${id} is revoked.\n`)
    case "first":
      return await first(context, operate, scope)
    default:
      throw new UsageError("say create, list, limit, revoke or first")
  }
}

/** What the first start shows, again: with a new key, because values of keys are not kept, and a new link. */
async function first(context: CliContext, operate: Operate, scope: object): Promise<number> {
  // What keys.create and users.link answer.
  const key = (await operate("keys.create", { ...scope, name: "first key", permissions })) as {
    secret: string
  }
  const { url } = (await operate("users.link", {})) as { url: string }
  const address = url.slice(0, url.indexOf("/sign-in"))
  const welcome = { url: address, modelSku: "umpire-decide", keyValue: key.secret, consoleUrl: url }
  return show(context, { ...key, url: address, console_url: url }, () => drawWelcome(welcome))
}

function newKey(context: CliContext): Record<string, unknown> {
  const given = manyOf(context, "permission", permissions)
  const expires = text(context, "expires")
  if (expires !== undefined && !z.iso.datetime().safeParse(expires).success)
    throw new UsageError("--expires takes a time in UTC such as 2027-01-01T00:00:00Z")
  return {
    name: text(context, "name") ?? "key",
    permissions: given.length > 0 ? given : ["inference"],
    ...(expires === undefined ? {} : { expires_at: expires }),
    ...givenLimits(context),
  }
}

function drawCreated(result: unknown): string {
  // What keys.create answers.
  const { id, secret } = result as { id: string; secret: string }
  return `${id} is ready. Its value is shown only now:\n\n  ${secret}\n`
}

function drawList(result: unknown): string {
  // What keys.list answers.
  const rows = (result as ListedKey[]).map((key) => [
    key.id,
    key.name,
    key.permissions.join(" "),
    key.last_used_at ?? "never",
    key.expires_at ?? "never",
    drawBudgets(key.budgets),
  ])
  return drawTable(["key", "name", "permissions", "last used", "expires", "budgets (USD)"], rows)
}
