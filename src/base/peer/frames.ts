/** Values as frames of bytes: length, SHA-256, then the value by the structured clone algorithm. */
import { hash } from "node:crypto"
import { deserialize, serialize } from "node:v8"
import { brokenAnswer } from "./failure.ts"

const lengthBytes = 4
const headBytes = lengthBytes + 32

export function encodeFrame(value: unknown): Buffer {
  const payload = serialize(value)
  const head = Buffer.alloc(lengthBytes)
  head.writeUInt32BE(payload.length)
  return Buffer.concat([head, digestOf(payload), payload])
}

/** What is cut off or changed on its way is Fault `invalid_worker_response`. */
export async function* decodeFrames(source: AsyncIterable<Uint8Array>, bytesMax: number): AsyncGenerator {
  let chunks: Uint8Array[] = []
  let size = 0
  let needed = headBytes
  for await (const chunk of source) {
    chunks.push(chunk)
    size += chunk.length
    while (size >= needed) {
      const bytes = Buffer.concat(chunks)
      chunks = [bytes]
      needed = headBytes + bytes.readUInt32BE(0)
      if (needed > bytesMax) throw brokenAnswer("it is too long")
      if (size < needed) break
      yield decodePayload(bytes.subarray(headBytes, needed), bytes.subarray(lengthBytes, headBytes))
      chunks = [bytes.subarray(needed)]
      size -= needed
      needed = headBytes
    }
  }
  if (size > 0) throw brokenAnswer("it was cut off")
}

function decodePayload(payload: Buffer, digest: Buffer): unknown {
  // The digest says that the bytes are what a peer of ours sent, before anything interprets them.
  if (!digestOf(payload).equals(digest)) throw brokenAnswer("it is not what was sent")
  return deserialize(payload)
}

const digestOf = (payload: Buffer): Buffer => hash("sha256", payload, "buffer")
