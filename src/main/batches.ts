/** Builds files and batches: the storage, the handlers of both APIs, and what runs batches in this gateway. */
import { existsSync } from "node:fs"
import { join } from "node:path"
import { keysOf } from "../base/lists.ts"
import type { Clock } from "../base/clock.ts"
import type { Config } from "../base/config-schema.ts"
import type { Ids } from "../base/ids.ts"
import type { Log } from "../base/log.ts"
import type { Handlers } from "../contract/endpoint.ts"
import { type BatchPath, type batchEndpoints, batchPaths } from "../contract/openai/batches.ts"
import type { messageBatchEndpoints } from "../contract/anthropic/batches.ts"
import type { fileEndpoints } from "../contract/openai/files.ts"
import { type EndpointName, type Table, table } from "../contract/table.ts"
import { messageBatchHandlers } from "../gateway/anthropic/batches.ts"
import { batchHandlers } from "../gateway/batches/batches.ts"
import { fileHandlers, FileSweeper } from "../gateway/batches/files.ts"
import type { LineEndpoint } from "../gateway/batches/run-line.ts"
import { type BatchRunner, startBatchRunner } from "../gateway/batches/runner.ts"
import type { LiveTraffic } from "../gateway/routing/queue.ts"
import type { PeriodicTask } from "../control/periodic.ts"
import type { Principals } from "../control/principals.ts"
import { errorBody } from "../server/reply.ts"
import { type Change, followChanges } from "../store/changes.ts"
import type { Database } from "../store/sql.ts"
import { diskOf } from "../store/disk-space.ts"
import { openDatabaseStorage } from "../store/files/database-storage.ts"
import { moveBlobs } from "../store/files/files.ts"
import { openS3Storage } from "../store/files/s3.ts"
import { type FileStorage, openDirectoryStorage, storageIdFile } from "../store/files/storage.ts"

const mebibyte = 1024 * 1024
const dayMs = 86_400_000

interface BatchNeeds {
  readonly config: Config
  readonly database: Database
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  readonly liveTraffic: LiveTraffic
  readonly principals: Pick<Principals, "current">
  readonly publicUrl: () => string
  /** Of the endpoints that batches may ask. */
  readonly handlers: Partial<Handlers<Table>>
}

interface Batches {
  readonly handlers: Handlers<typeof fileEndpoints & typeof batchEndpoints & typeof messageBatchEndpoints>
  readonly tasks: readonly PeriodicTask[]
  invalidate(change: Change): void
  close(): Promise<void>
}

export async function openBatches({
  liveTraffic,
  principals,
  config,
  database,
  clock,
  ids,
  log,
  handlers,
  publicUrl,
}: BatchNeeds): Promise<Batches> {
  const storage = await openStorage(config, { database, clock, log })
  const expiryMs = config.files.expiry_days * dayMs
  const runner: BatchRunner | null =
    config.batches.concurrency === 0
      ? null
      : await startBatchRunner({
          database,
          storage,
          clock,
          ids,
          log,
          errorBody,
          liveTraffic,
          callerNow: async ({ principal, membership }) => {
            const now = await principals.current(principal, membership.organizationId)
            return now?.membership.permissions.includes("inference") === true ? now : null
          },
          timeoutMs: config.server.request_timeout_ms,
          linesMax: config.batches.lines_max,
          concurrency: config.batches.concurrency,
          fileExpiryMs: expiryMs,
          endpoints: lineEndpoints(handlers),
        })
  const sweeper = new FileSweeper({ database, storage, clock, log })
  const sweeps = await followChanges(database, sweeper)
  const invalidate = (change: Change): void => {
    runner?.invalidate(change)
    sweeps.invalidate(change)
  }
  const files = {
    database,
    storage,
    clock,
    ids,
    log,
    fileBytesMax: Math.min(config.files.file_mib_max * mebibyte, storage.blobBytesMax),
    organizationBytesMax: config.files.organization_mib_max * mebibyte,
    expiryMs,
  }
  const batches = { database, clock, ids, openMax: config.batches.open_max, changed: invalidate }
  return {
    handlers: {
      ...fileHandlers(files),
      ...batchHandlers(batches),
      ...messageBatchHandlers({ ...batches, files, publicUrl }),
    },
    tasks: [sweeper.task],
    invalidate,
    close: async () => {
      await runner?.close()
      await sweeps.close()
    },
  }
}

/** The endpoints that lines of a batch may ask, by their paths. */
function lineEndpoints(handlers: Partial<Handlers<Table>>): Readonly<Record<BatchPath, LineEndpoint>> {
  const names: EndpointName[] = keysOf(table)
  const found = batchPaths.map((path) => {
    const name = names.find((one) => table[one].method === "POST" && table[one].path === path)
    // Each of them reads bytes, and none has parameters in its path.
    const handler = name && (handlers[name] as LineEndpoint["handler"] | undefined)
    return [path, { surface: name && table[name].surface, handler }]
  })
  // Every path has its endpoint.
  return Object.fromEntries(found) as Record<BatchPath, LineEndpoint>
}

interface StorageNeeds {
  readonly database: Database
  readonly clock: Clock
  readonly log: Log
}

/** Of the folder, S3 and the database the one that is configured; what is left in the folder of a single gateway moves there. */
export async function openStorage(
  config: Pick<Config, "files" | "data_dir" | "journal" | "database">,
  needs: StorageNeeds,
): Promise<FileStorage> {
  const { database, clock, log } = needs
  const own = join(config.data_dir, "files")
  const { s3_bucket, directory } = config.files
  if (s3_bucket === undefined && directory === undefined && config.database.url === undefined)
    return await openFolder(own, config, clock)
  const storage = await openShared(config, needs)
  if (directory === own || !existsSync(join(own, storageIdFile))) return storage
  const from = await openFolder(own, config, clock)
  const moved = await moveBlobs(database, { from, to: storage, now: new Date(clock.nowMs()) })
  if (moved > 0)
    log.info({ files: moved, storage: storage.id }, "files were moved to where all gateways see them")
  return storage
}

async function openShared(
  config: Pick<Config, "files" | "data_dir" | "journal">,
  { database, clock, log }: StorageNeeds,
): Promise<FileStorage> {
  const { s3_bucket, s3_access_key_id, s3_secret_access_key, directory, ...files } = config.files
  if (s3_bucket === undefined)
    return directory === undefined
      ? await openDatabaseStorage(database, new Date(clock.nowMs()))
      : await openFolder(directory, config, clock)
  if (s3_access_key_id === undefined || s3_secret_access_key === undefined)
    throw new Error(
      "Cannot use files.s3_bucket: files.s3_access_key_id or files.s3_secret_access_key is not set",
    )
  const place = {
    endpoint: files.s3_endpoint,
    region: files.s3_region,
    bucket: s3_bucket,
    prefix: files.s3_prefix,
    accessKeyId: s3_access_key_id,
    secretAccessKey: s3_secret_access_key,
  }
  return openS3Storage(place, clock.nowMs(), log)
}

const openFolder = async (
  directory: string,
  config: Pick<Config, "journal" | "data_dir">,
  clock: Clock,
): Promise<FileStorage> =>
  await openDirectoryStorage(directory, clock.nowMs(), diskOf(config, clock, directory))
