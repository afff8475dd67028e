/** Workload identity: tokens, issuers and the port for client certificates. */
import { z } from "zod"
import { flag, whole } from "./values.ts"

export const IdentityConfig = z.strictObject({
  token_lifetime_minutes: whole(5, 60)
    .default(15)
    .describe(
      "How long a workload access token is valid; less when the exchanged token or certificate expires earlier.",
    ),
  allow_private: flag()
    .default(false)
    .describe("Also fetch issuers' keys from loopback and private networks."),
  ca_file: z
    .string()
    .min(1)
    .optional()
    .describe(
      "PEM certificates to trust when issuers' keys are fetched, instead of the system's authorities.",
    ),
  mtls_port: whole(0, 65535)
    .optional()
    .describe("Port where client certificates are exchanged; without it the exchange is off."),
  mtls_host: z.string().min(1).default("127.0.0.1").describe("Address that the mTLS port listens on."),
  mtls_cert_file: z
    .string()
    .min(1)
    .optional()
    .describe("PEM certificate chain of the mTLS port, valid for the names of its providers."),
  mtls_key_file: z.string().min(1).optional().describe("PEM private key of the mTLS port."),
})
