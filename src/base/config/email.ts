/** The mail server that sends alerts. */
import { z } from "zod"
import { secret } from "../config-models.ts"
import { whole } from "./values.ts"

export const EmailConfig = z.strictObject({
  smtp_host: z
    .string()
    .min(1)
    .optional()
    .describe("Mail server that sends alerts; without it no e-mail is sent."),
  smtp_port: whole(1, 65535).default(587).describe("Its port."),
  smtp_tls: z
    .enum(["starttls", "implicit", "off"])
    .default("starttls")
    .describe(
      "starttls requires an upgrade to TLS, implicit begins with TLS (port 465), off sends in the clear.",
    ),
  smtp_ca_file: z
    .string()
    .min(1)
    .optional()
    .describe("PEM certificates to trust for the mail server, instead of the system's authorities."),
  smtp_user: z.string().min(1).optional().describe("User at the mail server, if it wants one."),
  smtp_password: secret("Password at the mail server."),
  from: z.string().min(3).max(320).default("Umpire <umpire@localhost>").describe("Sender of the e-mails."),
  recipients: z
    .enum(["members", "anyone"])
    .default("members")
    .describe("Whom alert rules may write to: members of the organization, or any address."),
})
