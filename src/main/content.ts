/** Builds what keeps content: the keys of the installation, the journal, and what moves it into the store. */
import { randomBytes } from "node:crypto"
import { once } from "node:events"
import { open, readFile, rename } from "node:fs/promises"
import { join } from "node:path"
import type { Clock } from "../base/clock.ts"
import type { Config } from "../base/config-schema.ts"
import { ConfigError } from "../base/config.ts"
import type { Ids } from "../base/ids.ts"
import type { Log } from "../base/log.ts"
import type { Metrics } from "../base/telemetry.ts"
import type { ContentAccess } from "../control/content/settings.ts"
import { ContentApplier, contentConsumer, contentLineMax } from "../gateway/content/applier.ts"
import { DroppedCounts, dropReasons } from "../gateway/content/dropped.ts"
import {
  type ContentLogger,
  createContentLogger,
  createContentPlans,
} from "../gateway/content/content-logger.ts"
import { traceContent } from "../gateway/content/request-content.ts"
import { type SetRedactionDeps, redactBySet } from "../gateway/question-sets/redact-by-set.ts"
import { redaction } from "../gateway/content/redactor.ts"
import { SetRedactor } from "../gateway/content/set-redactor.ts"
import type { Organizations } from "../store/organization-snapshot.ts"
import { type ContentCipher, contentKeyBytes, createContentCipher } from "../store/content/cipher.ts"
import type { ContentRecord } from "../store/content/journal.ts"
import type { DiskSpace } from "../store/disk-space.ts"
import { openJournal } from "../store/journal/journal.ts"
import type { Database } from "../store/sql.ts"

interface ContentNeeds {
  readonly config: Config
  readonly organizations: Pick<Organizations, "of">
  readonly cipher: ContentCipher
  readonly database: Database
  /** Of the journal of usage: each gateway has one. */
  readonly gatewayId: string
  readonly scoring: SetRedactionDeps
  readonly disk: Pick<DiskSpace, "claim">
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
}

export interface Content {
  readonly contentLogger: ContentLogger
  readonly access: ContentAccess
  addMetrics(metrics: Metrics): void
  close(): Promise<void>
}

const mebibyte = 1024 * 1024
/** A reader waits no longer for what was answered just now: to be stored, and to be redacted by a question set. */
const storedMsMax = 10_000
const redactedMsMax = 2_000
/** Of content that waits for the database; beyond it content is dropped and counted. */
const journalBytesMax = 256 * mebibyte

const contentDirectory = (dataDirectory: string): string => join(dataDirectory, "content")

export async function openContent(needs: ContentNeeds): Promise<Content> {
  const { config, cipher, database, clock, ids, log } = needs
  const journal = await openJournal<ContentRecord>({
    directory: contentDirectory(config.data_dir),
    consumers: [contentConsumer],
    newGatewayId: () => needs.gatewayId,
    durability: config.journal.durability,
    bytesMax: journalBytesMax,
    lineBytesMax: contentLineMax,
    clock,
  })
  const dropped = new DroppedCounts(clock)
  const plans = createContentPlans(needs.organizations, clock)
  const redactor = new SetRedactor({
    database,
    cipher,
    dropped,
    redact: (content, texts, signal) => redactBySet(needs.scoring, content, texts, signal),
    clock,
    log,
  })
  const onRedacting = (): void => redactor.wake()
  const applier = await ContentApplier.open({ database, journal, dropped, onRedacting, clock, ids, log })
  applier.start()
  redactor.start()
  const hasDiskSpace = (bytes: number): boolean => needs.disk.claim(bytes)
  const contentLogger = createContentLogger({ plans, cipher, journal, redaction, dropped, hasDiskSpace })
  return {
    contentLogger: config.telemetry.content ? traceContent(contentLogger) : contentLogger,
    access: {
      cipher,
      dropped: (organizationId) => dropped.pending(organizationId),
      settle: async (organizationId) => await settle(applier, redactor, organizationId),
    },
    addMetrics: (metrics) => {
      metrics.gauge("umpire_content_journal_bytes", "Size of the journal of kept content.", () => [
        { labels: {}, value: journal.bytes },
      ])
      metrics.total(
        "umpire_content_dropped_total",
        "Requests since the start whose content was to be kept and was not.",
        () => dropReasons.map((reason) => ({ labels: { reason }, value: dropped.totals().get(reason) ?? 0 })),
      )
    },
    close: async () => {
      await redactor.close()
      await applier.close()
      await applier
        .drain()
        .then(() => dropped.flush(database))
        .catch((error: unknown) =>
          log.warn({ err: error }, "content is left in the journal; the next start stores it"),
        )
      await journal.close()
    },
  }
}

/** What is not stored by then is not seen yet. */
async function settle(applier: ContentApplier, redactor: SetRedactor, organizationId: string): Promise<void> {
  const settled = applier
    .drain()
    .then(() => redactor.settle(organizationId, AbortSignal.timeout(redactedMsMax)))
    .catch(() => undefined)
  await Promise.race([settled, once(AbortSignal.timeout(storedMsMax), "abort")])
}

export const contentKeyFile = "content.key"

/**
 * Configured keys, or the key file of an embedded installation, which is made at the first start. Gateways on PostgreSQL share
 * what they store, so a file that each of them makes for itself would not do.
 */
export async function openContentCipher(
  config: Pick<Config, "content" | "database" | "data_dir">,
  hasContent: () => Promise<boolean>,
): Promise<ContentCipher> {
  const { keys } = config.content
  if (keys !== undefined) return createContentCipher(readKeys(keys))
  if (config.database.url !== undefined) return createContentCipher([])
  return createContentCipher([await readKeyFile(join(config.data_dir, contentKeyFile), hasContent)])
}

function readKeys(text: string): Buffer[] {
  return text.split(",").map((word, at) => {
    const key = Buffer.from(word.trim(), "base64")
    if (key.length === contentKeyBytes) return key
    throw new ConfigError(
      `Cannot use content.keys: key ${at + 1} is not ${contentKeyBytes} bytes in Base64; ` +
        "make one with: openssl rand -base64 32",
    )
  })
}

async function readKeyFile(path: string, hasContent: () => Promise<boolean>): Promise<Buffer> {
  const known = await readFile(path, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return null
    throw error
  })
  // An empty one is of a start that was killed before it had written the key.
  if (known !== null && known.trim() !== "") {
    const key = Buffer.from(known.trim(), "base64")
    if (key.length === contentKeyBytes) return key
    throw new ConfigError(`Cannot use ${path}: it is not ${contentKeyBytes} bytes in Base64`)
  }
  // A new key would be taken for the right one, and what is stored would be lost without a word.
  if (await hasContent())
    throw new ConfigError(
      `Cannot start: ${path} is missing, and the database holds content that was encrypted with it. ` +
        "Restore the file from a backup; or, to give that content up, set content.keys to a new key, made with: " +
        "openssl rand -base64 32",
    )
  const key = randomBytes(contentKeyBytes)
  // Complete before anything is encrypted with it: half a key would lose what it encrypted, or keep the server from starting.
  const draft = `${path}.new`
  const file = await open(draft, "w", 0o600)
  try {
    await file.writeFile(`${key.toString("base64")}\n`)
    await file.sync()
  } finally {
    await file.close()
  }
  await rename(draft, path)
  return key
}
