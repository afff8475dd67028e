/** `umpire keys`: makes, lists and revokes API keys. */
import { z } from "zod"
import { permissions } from "../contract/access.ts"
import type { OperatorClient } from "../contract/client.ts"
import type { ApiKey } from "../contract/platform/keys.ts"
import { type Action, operatorCommand, operates } from "./actions.ts"
import { type CliContext, UsageError, listOption, manyOf, show, text, valueOption } from "./command.ts"
import { drawBudgets, givenLimits, limitOptions } from "./key-limits.ts"
import { columns } from "./table.ts"
import { drawWelcome } from "./welcome.ts"

const drawKeys = columns<ApiKey>({
  key: ({ id }) => id,
  name: ({ name }) => name,
  permissions: (key) => key.permissions.join(" "),
  "last used": ({ last_used_at }) => last_used_at ?? "never",
  expires: ({ expires_at }) => expires_at ?? "never",
  "budgets (USD)": ({ budgets }) => drawBudgets(budgets),
})

const which = (action: string) => ({ key_id: `which key? umpire keys ${action} key_...` })

/** What the first start shows, again: with a new key, because values of keys are not kept, and a new link. */
const first: Action<OperatorClient> = async (context, connect) => {
  const { client, organizationId } = await connect()
  const params = { org_id: await organizationId() }
  const key = await client.createApiKey({
    params,
    body: { name: "first key", permissions: [...permissions] },
  })
  const { url } = await client.createSignInLink({ body: {} })
  const address = url.slice(0, url.indexOf("/sign-in"))
  const welcome = { url: address, modelSku: "umpire-decide", keyValue: key.secret ?? "", consoleUrl: url }
  return show(context, { ...key, url: address, console_url: url }, () => drawWelcome(welcome))
}

export const keys = operatorCommand({
  usage: [
    "umpire keys create --name ci [--permission inference ...] [--organization org_...] [--expires 2027-01-01T00:00:00Z]",
    "umpire keys list",
    "umpire keys limit key_... [--budget month=20 ...] [--requests-per-minute 60] [--tokens-per-minute 10000] [--model ...] [--network 10.0.0.0/8 ...]",
    "umpire keys revoke key_...",
    "umpire keys first",
  ],
  options: {
    name: valueOption("what the key is for", "n"),
    permission: listOption(`one of ${permissions.join(", ")}; may be repeated; defaults to inference`),
    expires: valueOption("when the key expires, such as 2027-01-01T00:00:00Z; defaults to never"),
    ...limitOptions,
  },
  inOrganization: true,
  actions: {
    create: operates("createApiKey", {
      input: newKey,
      draw: ({ id, secret }) => `${id} is ready. Its value is shown only now:\n\n  ${secret}\n`,
    }),
    list: operates("listApiKeys", { draw: drawKeys }),
    limit: operates("updateApiKey", {
      args: which("limit"),
      input: givenLimits,
      draw: (key) => drawKeys([key]),
    }),
    revoke: operates("deleteApiKey", {
      args: which("revoke"),
      json: ({ key_id }) => ({ id: key_id, revoked: true }),
      draw: (_, { key_id }) => `${key_id} is revoked.\n`,
    }),
    first,
  },
})

function newKey(context: CliContext) {
  const given = manyOf(context, "permission", permissions)
  const expires = text(context, "expires")
  if (expires !== undefined && !z.iso.datetime().safeParse(expires).success)
    throw new UsageError("--expires takes a time in UTC such as 2027-01-01T00:00:00Z")
  return {
    name: text(context, "name") ?? "key",
    permissions: given.length > 0 ? given : ["inference" as const],
    ...(expires === undefined ? {} : { expires_at: expires }),
    ...givenLimits(context),
  }
}
