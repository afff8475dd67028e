/** A call of an endpoint for inference by an API key, with an empty body. */
import type { Call } from "../src/contract/endpoint.ts"

// As much of a call as the handlers read.
export const inferenceCall = {
  body: new Uint8Array(),
  principal: { kind: "key", id: "key_1" },
  membership: { organizationId: "org_1" },
  request: { signal: new AbortController().signal, header: () => null },
  header: () => undefined,
} as unknown as Call<Record<string, never>, Record<string, never>, Uint8Array>
