/** Passkeys (WebAuthn): made on a device of the signed-in user, who then signs in with it instead of a password. */
import { z } from "zod"
import { namedObject } from "../endpoint.ts"
import { endpointGroup, sessionOnly } from "../endpoint-group.ts"
import { Datetime, Text, nameCharactersMax } from "./field-schemas.ts"

export const passkeysMax = 20
/** COSE's names of ES256, EdDSA and RS256. */
export const passkeyAlgorithms = [-7, -8, -257] as const
const partCharactersMax = 8192

/** Binary, as browsers write it in JSON. */
const Base64url = z
  .string()
  .min(1)
  .max(partCharactersMax)
  .regex(/^[A-Za-z0-9_-]+$/, "base64url is needed")

const clientData = Base64url.describe("`clientDataJSON` of the browser's response.")
const authenticatorData = Base64url.describe("`authenticatorData` of the browser's response.")

export const Assertion = z.strictObject({
  credential_id: Base64url,
  client_data: clientData,
  authenticator_data: authenticatorData,
  signature: Base64url,
})
export type Assertion = z.infer<typeof Assertion>

export const PasskeyChallenge = namedObject("PasskeyChallenge", {
  challenge: z.string().describe("In base64url; answered once, within five minutes."),
  rp_id: z.string().describe("The host that passkeys of this installation belong to."),
})

const Passkey = namedObject("Passkey", {
  id: z.string(),
  name: z.string(),
  created_at: Datetime,
  last_used_at: Datetime.nullable(),
})

const passkeys = endpointGroup("/v1/session/passkeys", {
  area: "Sessions",
  read: sessionOnly,
  write: sessionOnly,
})

export const passkeyTable = {
  listPasskeys: passkeys.get({
    summary: "List the passkeys of the signed-in user",
    output: z.array(Passkey),
  }),
  beginPasskey: passkeys.at("/challenge").post({
    summary: "Begin to add a passkey; the answer is what the browser's `navigator.credentials.create` needs",
    body: z.strictObject({
      current_password: z.string().max(256).optional().describe("Needed when the user has a password."),
    }),
    output: namedObject("NewPasskeyChallenge", {
      ...PasskeyChallenge.shape,
      user_handle: z.string().describe("In base64url."),
      user_name: z.string(),
      known_credentials: z.array(z.string()).describe("Authenticators that have a passkey already."),
    }),
    errors: ["conflict", "rate_limited", "overloaded"],
  }),
  addPasskey: passkeys.post({
    summary: "Add the passkey that a device has made",
    body: z.strictObject({
      name: Text(nameCharactersMax).describe("For the list, such as the name of the device."),
      client_data: clientData,
      authenticator_data: authenticatorData,
      public_key: Base64url.describe("What `getPublicKey()` of the response gives: SubjectPublicKeyInfo."),
    }),
    output: Passkey,
    errors: ["conflict"],
  }),
  removePasskey: passkeys.at("/{passkey_id}").remove({ summary: "Remove a passkey of the signed-in user" }),
}
