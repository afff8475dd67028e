/** Workload identity: tokens, issuers and the port for client certificates. */
import { z } from "zod"
import { flag, whole } from "./values.ts"

export const IdentityConfig = z.strictObject({
  token_lifetime_minutes: whole(5, 60)
    .default(15)
    .describe("How long a workload access token is valid, unless what it was exchanged for ends earlier."),
  allow_private: flag()
    .default(false)
    .describe("Fetch the keys of issuers from loopback and private networks too."),
  ca_file: z
    .string()
    .min(1)
    .optional()
    .describe("PEM certificates to trust when issuers are asked, instead of the usual authorities."),
  mtls_port: whole(0, 65535)
    .optional()
    .describe("Port where client certificates are exchanged; without it there is none."),
  mtls_host: z.string().min(1).default("127.0.0.1").describe("Address that the mTLS port listens on."),
  mtls_cert_file: z
    .string()
    .min(1)
    .optional()
    .describe("PEM certificate chain of the mTLS port, good for the names of its providers."),
  mtls_key_file: z.string().min(1).optional().describe("PEM private key of the mTLS port."),
})
