/** The keys that kept content is encrypted with, and the room that it waits in. */
import { z } from "zod"
import { secret } from "../config-models.ts"
import { whole } from "./values.ts"

export const ContentConfig = z.strictObject({
  keys: secret(
    "Keys of kept content, 32 bytes in Base64 each, separated by commas: the first encrypts, all decrypt. " +
      "Without it the embedded database has a key file in data_dir, and PostgreSQL keeps no content.",
  ),
  journal_size_max_mib: whole(16, 1_048_576)
    .default(256)
    .describe("Most content that may wait for the database; beyond it content is dropped and counted."),
  disk_free_min_mib: whole(0, 1_073_741_824)
    .default(512)
    .describe(
      "With less free space on the disk of data_dir content is dropped and counted, so that usage has room.",
    ),
})
