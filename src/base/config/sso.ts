/** Single sign-on through an OpenID Connect provider. */
import { z } from "zod"
import { secret } from "../config-models.ts"
import { flag } from "./values.ts"

export const SsoConfig = z.strictObject({
  issuer: z
    .url()
    .optional()
    .describe("OpenID Connect provider for single sign-on; without it there is none."),
  client_id: z.string().min(1).optional().describe("What the provider calls this installation."),
  client_secret: secret("The client secret at the provider."),
  verified_email_only: flag()
    .default(true)
    .describe("Match users by email only when the provider says that the address was verified."),
})
