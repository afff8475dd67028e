/** Checks requests to S3 as a server of Amazon does, by AWS Signature Version 4, and keeps what was put. */
import { createHash, createHmac } from "node:crypto"
import { type IncomingMessage, type Server, createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { buffer } from "node:stream/consumers"

export interface SignedStore {
  readonly url: string
  readonly server: Server
  /** What was put, by its path. */
  readonly objects: Map<string, Buffer>
  /** How often a signature was wrong. */
  refused: number
}

const digest = (content: Buffer | string): string => createHash("sha256").update(content).digest("hex")
const hmac = (key: Buffer | string, text: string): Buffer => createHmac("sha256", key).update(text).digest()
const form =
  /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/s3\/aws4_request, ?SignedHeaders=([^,]+), ?Signature=(\w+)$/

export async function startSignedStore(key: string, secret: string, region: string): Promise<SignedStore> {
  const objects = new Map<string, Buffer>()
  const server = createServer((request, response) => {
    void buffer(request).then((body) => {
      const isRight = isSigned(request, body, { key, secret, region })
      if (!isRight) store.refused++
      else if (request.method === "PUT") objects.set(request.url ?? "", body)
      response
        .writeHead(isRight ? 200 : 403)
        .end(isRight ? "" : "<Error><Code>SignatureDoesNotMatch</Code></Error>")
    })
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  // It listens on a port.
  const { port } = server.address() as AddressInfo
  const store: SignedStore = { url: `http://127.0.0.1:${port}`, server, objects, refused: 0 }
  return store
}

function isSigned(
  { method, url, headers }: IncomingMessage,
  body: Buffer,
  { key, secret, region }: { key: string; secret: string; region: string },
): boolean {
  const [, givenKey, date = "", givenRegion, names = "", signature] =
    form.exec(headers.authorization ?? "") ?? []
  if (givenKey !== key || givenRegion !== region) return false
  const stated = String(headers["x-amz-content-sha256"])
  if (stated !== "UNSIGNED-PAYLOAD" && stated !== digest(body)) return false
  const { pathname, searchParams } = new URL(url ?? "", "http://host")
  const query = [...searchParams]
    .map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`)
    .toSorted()
    .join("&")
  const signed = names.split(";").map((name) => `${name}:${String(headers[name]).trim()}\n`)
  const canonical = [method, pathname, query, signed.join(""), names, stated].join("\n")
  const scope = `${date}/${region}/s3/aws4_request`
  const text = ["AWS4-HMAC-SHA256", headers["x-amz-date"], scope, digest(canonical)].join("\n")
  const signing = [region, "s3", "aws4_request"].reduce<Buffer>(hmac, hmac(`AWS4${secret}`, date))
  return hmac(signing, text).toString("hex") === signature
}
