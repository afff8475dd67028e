/** `umpire users`: lists users, and makes links that sign in, and lets one in again who has lost the password. */
import { type CliContext, type Command, UsageError, show } from "./command.ts"
import type { Operate } from "./operator.ts"
import { drawTable } from "./table.ts"

interface ListedUser {
  readonly id: string
  readonly email: string
  readonly has_password: boolean
  readonly organizations: number
}

export const users = (operate: (context: CliContext) => Operate): Command => ({
  usage: ["umpire users list", "umpire users link ada@example.com", "umpire users reset ada@example.com"],
  options: { json: { type: "boolean" } },
  optionHelp: { json: "print JSON" },
  run: async (context) => await run(context, operate(context)),
})

async function run(context: CliContext, operate: Operate): Promise<number> {
  const [action, email] = context.positionals
  switch (action) {
    case "list":
      return show(context, await operate("users.list", {}), drawList)
    case "link":
      return show(context, await operate("users.link", email === undefined ? {} : { email }), drawLink)
    case "reset":
      if (!email) throw new UsageError("whose password? umpire users reset ada@example.com")
      return show(context, await operate("users.reset", { email }), drawReset)
    default:
      throw new UsageError("say list, link or reset")
  }
}

function drawLink(result: unknown): string {
  // What users.link answers.
  const { email, url, expires_at } = result as { email: string; url: string; expires_at: string }
  return `This link signs ${email} in once, until ${expires_at}; it is shown only now:\n\n  ${url}\n`
}

function drawReset(result: unknown): string {
  // What users.reset answers.
  const { email, url, expires_at } = result as { email: string; url: string; expires_at: string }
  return [
    `The password of ${email} was removed and all sessions were ended.`,
    `This link signs in once, until ${expires_at}; it is shown only now:`,
    "",
    `  ${url}`,
    "",
  ].join("\n")
}

function drawList(result: unknown): string {
  // What users.list answers.
  const rows = (result as ListedUser[]).map((user) => [
    user.id,
    user.email,
    user.has_password ? "yes" : "no",
    String(user.organizations),
  ])
  return drawTable(["user", "email", "password", "organizations"], rows)
}
