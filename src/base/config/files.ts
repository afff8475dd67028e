/** Where uploaded files lie, and how much of them. */
import { z } from "zod"
import { secret } from "../config-models.ts"
import { whole } from "./values.ts"

export const FilesConfig = z.strictObject({
  directory: z
    .string()
    .min(1)
    .optional()
    .describe(
      "Folder of uploaded files and results of batches; without it, files in data_dir. " +
        "Gateways that serve the same files need the same folder, as on a network file system.",
    ),
  s3_bucket: z
    .string()
    .regex(/^[\w.-]{1,255}$/)
    .optional()
    .describe("Bucket of S3-compatible storage for files and results; without it they lie in the folder."),
  s3_endpoint: z
    .url({ protocol: /^https?$/ })
    .default("https://s3.amazonaws.com")
    .describe("Address of the storage; the bucket is named in the path."),
  s3_region: z.string().min(1).max(64).default("us-east-1").describe("Region that requests are signed for."),
  s3_prefix: z
    .string()
    .regex(/^(?:[\w.-]+\/)*$/, { error: "must be empty or end with a slash" })
    .default("umpire/")
    .describe("What the names of objects begin with; gateways that serve the same files need the same."),
  s3_access_key_id: z.string().min(1).optional().describe("Access key of the storage."),
  s3_secret_access_key: secret("Secret of the access key."),
  file_mib_max: whole(1, 16_384).default(200).describe("Largest file that can be uploaded."),
  organization_mib_max: whole(1, 1_073_741_824)
    .default(10_240)
    .describe("Most that the files of one organization may take; a larger upload is refused."),
  expiry_days: whole(1, 3_650)
    .default(30)
    .describe("Files are deleted after so many days, unless their upload says sooner."),
})
