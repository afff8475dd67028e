/** Passkeys in this browser: what it is asked for, and what the API takes of its answers. */
import { type Assertion, passkeyAlgorithms } from "../../../src/contract/platform/passkeys.ts"
import { api } from "../api.ts"
import { t } from "../i18n/translate.ts"

export const hasPasskeys = (): boolean => "PublicKeyCredential" in globalThis

interface NewPasskey {
  readonly client_data: string
  readonly authenticator_data: string
  readonly public_key: string
}

/** Null where the person changed their mind. */
export async function createPasskey(current_password: string | null): Promise<NewPasskey | null> {
  const given = await api.beginPasskey({ body: current_password === null ? {} : { current_password } })
  const publicKey: PublicKeyCredentialCreationOptions = {
    challenge: decode(given.challenge),
    rp: { id: given.rp_id, name: "Umpire" },
    user: { id: decode(given.user_handle), name: given.user_name, displayName: given.user_name },
    pubKeyCredParams: passkeyAlgorithms.map((alg) => ({ type: "public-key", alg })),
    authenticatorSelection: { residentKey: "required", userVerification: "required" },
    excludeCredentials: given.known_credentials.map((id) => ({ type: "public-key", id: decode(id) })),
    attestation: "none",
  }
  const made = await asked(navigator.credentials.create({ publicKey }))
  if (!(made?.response instanceof AuthenticatorAttestationResponse)) return null
  const { response } = made
  const key = response.getPublicKey()
  if (!key) throw new Error(t("This device makes no passkey that Umpire can read. Try another one."))
  return {
    client_data: encode(response.clientDataJSON),
    authenticator_data: encode(response.getAuthenticatorData()),
    public_key: encode(key),
  }
}

/** Null where the person changed their mind. */
export async function askPasskey(): Promise<Assertion | null> {
  const { challenge, rp_id } = await api.createPasskeyChallenge()
  const publicKey: PublicKeyCredentialRequestOptions = {
    challenge: decode(challenge),
    rpId: rp_id,
    userVerification: "required",
  }
  const given = await asked(navigator.credentials.get({ publicKey }))
  if (!(given?.response instanceof AuthenticatorAssertionResponse)) return null
  const { clientDataJSON, authenticatorData, signature } = given.response
  return {
    credential_id: given.id,
    client_data: encode(clientDataJSON),
    authenticator_data: encode(authenticatorData),
    signature: encode(signature),
  }
}

/** Browsers say "not allowed" for a closed window and for time that ran out alike. */
async function asked(asking: Promise<Credential | null>): Promise<PublicKeyCredential | null> {
  try {
    const credential = await asking
    return credential instanceof PublicKeyCredential ? credential : null
  } catch (error) {
    if (!(error instanceof DOMException)) throw error
    if (error.name === "NotAllowedError" || error.name === "AbortError") return null
    if (error.name === "InvalidStateError")
      throw new Error(t("This device has a passkey of yours already."), { cause: error })
    throw error
  }
}

function decode(text: string): Uint8Array<ArrayBuffer> {
  const binary = atob(text.replaceAll("-", "+").replaceAll("_", "/"))
  return Uint8Array.from(binary, (letter) => letter.codePointAt(0) ?? 0)
}

function encode(bytes: ArrayBuffer): string {
  const binary = String.fromCodePoint(...new Uint8Array(bytes))
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")
}
