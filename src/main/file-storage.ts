/** Opens where files lie: a folder, or a bucket of S3-compatible storage where one is configured. */
import { join } from "node:path"
import type { Config } from "../base/config-schema.ts"
import type { Log } from "../base/log.ts"
import { openS3Storage } from "../store/files/s3.ts"
import { type FileStorage, openDirectoryStorage } from "../store/files/storage.ts"

export async function openStorage(
  { files, data_dir }: Pick<Config, "files" | "data_dir">,
  nowMs: number,
  log: Log,
): Promise<FileStorage> {
  const { s3_bucket, s3_access_key_id, s3_secret_access_key } = files
  if (s3_bucket === undefined)
    return await openDirectoryStorage(files.directory ?? join(data_dir, "files"), nowMs)
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
