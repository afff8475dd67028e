/** Redacts texts by patterns in a thread, within a time limit. */
import { createPool } from "../../base/peer/pool.ts"
import { threadChannel } from "../../base/peer/supervisor.ts"
import type { NamedPattern } from "../../base/redaction.ts"

/** What the thread serves. */
export interface RedactService {
  redact: { input: RedactJob; output: RedactedTexts }
}

interface RedactJob {
  readonly patterns: readonly NamedPattern[]
  readonly texts: readonly string[]
}

export interface RedactedTexts {
  readonly texts: readonly string[]
  /** How many passages were replaced. */
  readonly count: number
}

export interface Redaction {
  /** Rejects when it cannot be done in time: such texts must not be stored. */
  run(
    organizationId: string,
    patterns: readonly NamedPattern[],
    texts: readonly string[],
  ): Promise<RedactedTexts>
  close(): Promise<void>
}

const waitingMax = 1024
/** A thread that works on one text for longer is ended; matching is linear, but a text may have mebibytes. */
const workMsMax = 15_000

export function createRedaction(): Redaction {
  const pool = createPool<RedactService>({
    spawn: () => threadChannel(new URL("./redact-thread.ts", import.meta.url)),
    waitingMax,
    silenceMsMax: workMsMax,
  })
  return {
    run: async (organizationId, patterns, texts) =>
      await pool.run(organizationId, "redact", { patterns, texts }, AbortSignal.timeout(workMsMax)),
    close: async () => await pool.close(),
  }
}
