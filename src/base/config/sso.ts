/** Single sign-on through an OpenID Connect provider. */
import { z } from "zod"
import { secret } from "../config-models.ts"
import { flag } from "./values.ts"

export const SsoConfig = z.strictObject({
  issuer: z
    .url()
    .optional()
    .describe("Issuer of the OpenID Connect provider for single sign-on; without it single sign-on is off."),
  client_id: z.string().min(1).optional().describe("Client id at the provider."),
  client_secret: secret("Client secret at the provider."),
  verified_email_only: flag()
    .default(true)
    .describe("Match users by email only when the provider marks the address as verified."),
})
