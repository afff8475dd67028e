/** Opens where files lie: a folder, or a bucket of S3-compatible storage where one is configured. */
import { join } from "node:path"
import type { Clock } from "../base/clock.ts"
import type { Config } from "../base/config-schema.ts"
import type { Log } from "../base/log.ts"
import { DiskSpace } from "../store/disk-space.ts"
import { openS3Storage } from "../store/files/s3.ts"
import { type FileStorage, openDirectoryStorage } from "../store/files/storage.ts"

const mebibyte = 1024 * 1024

export async function openStorage(
  { files, data_dir, journal }: Pick<Config, "files" | "data_dir" | "journal">,
  clock: Clock,
  log: Log,
): Promise<FileStorage> {
  const nowMs = clock.nowMs()
  const { s3_bucket, s3_access_key_id, s3_secret_access_key } = files
  if (s3_bucket === undefined) {
    const directory = files.directory ?? join(data_dir, "files")
    const disk = new DiskSpace({ directory, reservedBytes: journal.disk_free_min_mib * mebibyte }, clock)
    return await openDirectoryStorage(directory, nowMs, disk)
  }
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
  return openS3Storage(place, nowMs, log)
}
