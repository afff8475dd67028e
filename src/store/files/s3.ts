/** Files in S3-compatible storage: requests signed by AWS Signature Version 4, the bucket in the path. */
import { createHash, randomUUID } from "node:crypto"
import { AwsClient } from "aws4fetch"
import type { Log } from "../../base/log.ts"
import { type BlobName, type ByteRange, type FileStorage, blobCut, blobGone, verified } from "./storage.ts"

interface S3Place {
  readonly endpoint: string
  readonly region: string
  readonly bucket: string
  /** In front of every key. */
  readonly prefix: string
  readonly accessKeyId: string
  readonly secretAccessKey: string
}

const mebibyte = 1024 * 1024
/** What is in memory of a file. Parts of an upload must have 5 MiB, all but the last. */
const pieceBytes = 8 * mebibyte
/** The largest object that is copied at once. */
const blobBytesMax = 5 * 1024 * mebibyte
const requestMsMax = 60_000
/** A transaction waits for it. */
const removeMsMax = 10_000
const retriesMax = 3
const stagingMsMax = 24 * 3_600_000

/**
 * `<prefix><organization>/<first two digits>/<SHA-256>`; what is being uploaded lies under `<prefix>staging/`, and is copied within
 * the storage to where it is read. Nothing is asked before it is needed: a storage that is away does not keep a gateway from starting.
 */
export function openS3Storage(place: S3Place, nowMs: number, log: Log): FileStorage {
  const bucket = openBucket(place)
  removeAbandoned(bucket, nowMs).catch((error: unknown) =>
    log.warn(
      { err: error },
      "the storage of files cannot be reached yet, or does not list what was abandoned",
    ),
  )
  return {
    id: `s3:${place.bucket}/${place.prefix}`,
    blobBytesMax,
    stage: async (pieces) => {
      const key = `staging/${randomUUID()}`
      const { sha256, bytes } = await upload(bucket, key, pieces)
      return {
        sha256,
        bytes,
        place: async (organizationId) => await bucket.copy(key, keyOf({ organizationId, sha256 })),
        // Where it stays, it counts as abandoned.
        discard: async () => await bucket.remove(key).catch(() => undefined),
      }
    },
    read: (name, range) =>
      range
        ? readRange(bucket, keyOf(name), range)
        : verified(readRange(bucket, keyOf(name), { start: 0, length: Infinity }), name.sha256),
    remove: async (name) => await bucket.remove(keyOf(name)),
  }
}

const keyOf = ({ organizationId, sha256 }: BlobName): string =>
  `${organizationId}/${sha256.slice(0, 2)}/${sha256}`

interface Bucket {
  put(key: string, bytes: Uint8Array, query?: string): Promise<Response>
  /** Answers the XML. */
  post(key: string, query: string, xml: string): Promise<string>
  /** Empty beyond its end. */
  get(key: string, start: number, length: number): Promise<Uint8Array>
  copy(from: string, to: string): Promise<void>
  remove(key: string, query?: string): Promise<void>
  list(prefix: string): Promise<string>
}

function openBucket({ endpoint, region, bucket, prefix, accessKeyId, secretAccessKey }: S3Place): Bucket {
  const client = new AwsClient({ accessKeyId, secretAccessKey, region, service: "s3", retries: retriesMax })
  const root = `${endpoint.replace(/\/$/, "")}/${bucket}`
  const path = (key: string): string => `${prefix}${key}`.split("/").map(encodeURIComponent).join("/")
  const send = async (method: string, address: string, init: RequestInit = {}): Promise<Response> =>
    await client.fetch(`${root}${address}`, { method, signal: AbortSignal.timeout(requestMsMax), ...init })
  return {
    put: async (key, bytes, query = "") => {
      const sha256 = createHash("sha256").update(bytes).digest("hex")
      const headers = { "x-amz-content-sha256": sha256 }
      return await done(await send("PUT", `/${path(key)}${query}`, { headers, body: Buffer.from(bytes) }))
    },
    post: async (key, query, xml) => {
      const body = xml === "" ? {} : { body: xml }
      return await answered(await done(await send("POST", `/${path(key)}${query}`, body)))
    },
    get: async (key, start, length) => {
      const headers = { range: `bytes=${start}-${start + length - 1}` }
      const response = await send("GET", `/${path(key)}`, { headers })
      if (response.status === 416) return new Uint8Array()
      if (response.ok) return new Uint8Array(await response.arrayBuffer())
      const why = await refusal(response)
      if (why.includes("NoSuchKey")) throw blobGone()
      throw new Error(why)
    },
    copy: async (from, to) => {
      const headers = { "x-amz-copy-source": `/${bucket}/${path(from)}` }
      await answered(await done(await send("PUT", `/${path(to)}`, { headers })))
    },
    remove: async (key, query = "") => {
      const signal = AbortSignal.timeout(removeMsMax)
      const response = await send("DELETE", `/${path(key)}${query}`, { signal })
      if (response.status !== 404) await done(response)
    },
    list: async (under) =>
      await answered(
        await done(await send("GET", `?list-type=2&prefix=${encodeURIComponent(`${prefix}${under}`)}`)),
      ),
  }
}

async function done(response: Response): Promise<Response> {
  if (!response.ok) throw new Error(await refusal(response))
  return response
}

async function refusal(response: Response): Promise<string> {
  const code = fieldOf(await response.text().catch(() => ""), "Code")
  return `Cannot use the storage of files: S3 answered ${[response.status, code].filter(Boolean).join(" ")}`
}

/** Long work is answered with 200 before it has failed. */
async function answered(response: Response): Promise<string> {
  const xml = await response.text()
  if (/<Error>/.test(xml))
    throw new Error(`Cannot use the storage of files: S3 answered ${fieldOf(xml, "Code") ?? "an error"}`)
  return xml
}

const fieldOf = (xml: string, name: string): string | null =>
  new RegExp(`<${name}>([^<]*)</${name}>`).exec(xml)?.[1] ?? null

/** A file of one piece in one request; longer ones in parts. Leaves nothing when `pieces` rejects. */
async function upload(
  bucket: Bucket,
  key: string,
  pieces: AsyncIterable<Uint8Array>,
): Promise<{ sha256: string; bytes: number }> {
  const hash = createHash("sha256")
  const tags: string[] = []
  let bytes = 0
  let uploadId: string | null = null
  const putPart = async (id: string, part: Uint8Array): Promise<void> => {
    const query = `?partNumber=${tags.length + 1}&uploadId=${encodeURIComponent(id)}`
    tags.push((await bucket.put(key, part, query)).headers.get("etag") ?? "")
  }
  try {
    for await (const { part, isLast } of cutParts(pieces)) {
      hash.update(part)
      bytes += part.length
      if (isLast && uploadId === null) await bucket.put(key, part)
      else {
        uploadId ??= fieldOf(await bucket.post(key, "?uploads", ""), "UploadId") ?? ""
        await putPart(uploadId, part)
      }
    }
    if (uploadId !== null)
      await bucket.post(key, `?uploadId=${encodeURIComponent(uploadId)}`, completion(tags))
  } catch (error) {
    if (uploadId !== null)
      await bucket.remove(key, `?uploadId=${encodeURIComponent(uploadId)}`).catch(() => undefined)
    throw error
  }
  return { sha256: hash.digest("hex"), bytes }
}

const completion = (tags: readonly string[]): string => {
  const parts = tags.map((tag, at) => `<Part><PartNumber>${at + 1}</PartNumber><ETag>${tag}</ETag></Part>`)
  return `<CompleteMultipartUpload>${parts.join("")}</CompleteMultipartUpload>`
}

/** At least one, and all but the last of the same size. */
async function* cutParts(
  pieces: AsyncIterable<Uint8Array>,
): AsyncGenerator<{ readonly part: Uint8Array; readonly isLast: boolean }> {
  let held: Uint8Array[] = []
  let length = 0
  for await (const piece of pieces) {
    held.push(piece)
    length += piece.length
    while (length > pieceBytes) {
      const all = Buffer.concat(held, length)
      yield { part: all.subarray(0, pieceBytes), isLast: false }
      held = [all.subarray(pieceBytes)]
      length -= pieceBytes
    }
  }
  yield { part: Buffer.concat(held, length), isLast: true }
}

async function* readRange(
  bucket: Bucket,
  key: string,
  { start, length }: ByteRange,
): AsyncGenerator<Uint8Array> {
  for (let done = 0; done < length;) {
    const wanted = Math.min(pieceBytes, length - done)
    const bytes = await bucket.get(key, start + done, wanted)
    if (bytes.length > 0) yield bytes
    done += bytes.length
    if (bytes.length === wanted) continue
    if (length === Infinity) return
    throw blobCut()
  }
}

/** Of uploads that a gateway could not end; some at each start. */
async function removeAbandoned(bucket: Bucket, nowMs: number): Promise<void> {
  const xml = await bucket.list("staging/")
  for (const [, entry = ""] of xml.matchAll(/<Contents>(.*?)<\/Contents>/gs)) {
    const name = /staging\/([\w-]+)$/.exec(fieldOf(entry, "Key") ?? "")?.[1]
    const changedMs = Date.parse(fieldOf(entry, "LastModified") ?? "")
    if (name && nowMs - changedMs > stagingMsMax) await bucket.remove(`staging/${name}`)
  }
}
