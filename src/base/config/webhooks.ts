/** Where events are sent. */
import { z } from "zod"
import { flag } from "./values.ts"

export const WebhooksConfig = z.strictObject({
  allow_private: flag()
    .default(false)
    .describe(
      "Also send webhooks to loopback and private networks, with HTTP too; every organization can then reach them.",
    ),
})
