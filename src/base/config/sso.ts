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
  scope: z
    .string()
    .min(1)
    .max(256)
    .default("openid email profile")
    .describe("Scopes that are asked for; some providers tell groups only with one of their own."),
  groups_claim: z
    .string()
    .min(1)
    .max(128)
    .default("groups")
    .describe("Claim that lists the groups of a user."),
  verified_email_only: flag()
    .default(true)
    .describe("Match users by email only when the provider marks the address as verified."),
})
