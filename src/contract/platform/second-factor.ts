/** Two-factor sign-in of the signed-in user: codes of an authenticator app, and recovery codes. */
import { z } from "zod"
import { endpointGroup, sessionOnly } from "../endpoint-group.ts"
import { shownOnce } from "./field-schemas.ts"

export const recoveryCodesCount = 10

/** Of the app, or a recovery code; people type spaces and dashes. */
export const Code = z
  .string()
  .trim()
  .min(6)
  .max(32)
  .describe("Six digits of the authenticator app, or a recovery code. Each is taken once.")

const RecoveryCodes = z
  .object({
    recovery_codes: z
      .array(z.string())
      .nullable()
      .describe("Each signs in once instead of a code. Shown once: null when the request is repeated."),
  })
  .meta({ id: "RecoveryCodes" })

const codeForRecoveryCodes = {
  body: z.strictObject({ code: Code }),
  output: RecoveryCodes,
  secrets: ["recovery_codes"],
  errors: ["conflict", "rate_limited"],
} as const

const factor = endpointGroup("/v1/session/second_factor", {
  area: "Sessions",
  read: sessionOnly,
  write: sessionOnly,
})

export const secondFactorTable = {
  getSecondFactor: factor.get({
    summary: "Read whether the signed-in user signs in with a second factor",
    output: z.object({ enabled: z.boolean(), recovery_codes_left: z.int() }).meta({ id: "SecondFactor" }),
  }),
  beginSecondFactor: factor.post({
    summary: "Set up two-factor sign-in; it is on once a code of the new secret has confirmed it",
    body: z.strictObject({
      current_password: z.string().max(256).optional().describe("Needed when the user has a password."),
    }),
    output: z
      .object({
        secret: shownOnce("What the authenticator app makes codes of, in base32."),
        uri: shownOnce("The same as an `otpauth:` address, which apps scan as a QR code."),
      })
      .meta({ id: "NewSecondFactor" }),
    secrets: ["secret", "uri"],
    errors: ["conflict", "rate_limited", "overloaded"],
  }),
  confirmSecondFactor: factor.at("/confirm").post({
    summary: "Switch two-factor sign-in on with a first code; every other session of the user ends",
    ...codeForRecoveryCodes,
  }),
  replaceRecoveryCodes: factor.at("/recovery_codes").post({
    summary: "Get new recovery codes; the old ones end",
    ...codeForRecoveryCodes,
  }),
  removeSecondFactor: factor.at("/remove").post({
    summary: "Switch two-factor sign-in off",
    body: z.strictObject({ code: Code }),
    output: z.void(),
    status: 204,
    errors: ["conflict", "rate_limited"],
  }),
}
