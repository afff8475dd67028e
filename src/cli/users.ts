/** `umpire users`: lists users, and makes links that sign in, and lets one in again who has lost the password. */
import type { OutputOf } from "../contract/endpoint.ts"
import type { OperatorTable } from "../contract/operator.ts"
import { operatorCommand, operates } from "./actions.ts"
import { columns } from "./table.ts"

export const users = operatorCommand({
  usage: ["umpire users list", "umpire users link ada@example.com", "umpire users reset ada@example.com"],
  actions: {
    list: operates("listUsers", {
      draw: columns<OutputOf<OperatorTable["listUsers"]>[number]>({
        user: ({ id }) => id,
        email: ({ email }) => email,
        password: ({ has_password }) => (has_password ? "yes" : "no"),
        organizations: ({ organizations }) => String(organizations),
      }),
    }),
    link: operates("createSignInLink", {
      args: { email: null },
      draw: ({ email, url, expires_at }) =>
        `This link signs ${email} in once, until ${expires_at}; it is shown only now:\n\n  ${url}\n`,
    }),
    reset: operates("resetPassword", {
      args: { email: "whose password? umpire users reset ada@example.com" },
      draw: ({ email, url, expires_at }) =>
        [
          `The password and the second factor of ${email} were removed and all sessions were ended.`,
          `This link signs in once, until ${expires_at}; it is shown only now:`,
          "",
          `  ${url}`,
          "",
        ].join("\n"),
    }),
  },
})
