/** Decodes the bodies of requests that were sent compressed, within bounds. */
import { promisify } from "node:util"
import { brotliDecompress, gunzip, inflate } from "node:zlib"
import { errorCode } from "../base/error-code.ts"

const decoders = {
  gzip: promisify(gunzip),
  "x-gzip": promisify(gunzip),
  deflate: promisify(inflate),
  br: promisify(brotliDecompress),
} as const

export type ContentCoding = keyof typeof decoders

export const isContentCoding = (name: string): name is ContentCoding => Object.hasOwn(decoders, name)

/** JSON rarely shrinks to a hundredth. */
const ratioMax = 256
/** Below this size the ratio does not matter. */
const freeBytes = 1024 * 1024

/** The decoded body is larger than it may be. */
export class ContentTooLarge extends Error {}

/** How large the decoded body may be, where `bytesMax` is the limit of its endpoint. */
export const decodedMax = (bytes: Uint8Array, bytesMax: number): number =>
  Math.min(bytesMax, Math.max(freeBytes, bytes.byteLength * ratioMax))

/** Runs in zlib's threads. Rejects with ContentTooLarge, or with zlib's error for what is not in this coding. */
export async function decodeContent(
  coding: ContentCoding,
  bytes: Uint8Array,
  maxOutputLength: number,
): Promise<Uint8Array> {
  try {
    return await decoders[coding](bytes, { maxOutputLength })
  } catch (error) {
    if (errorCode(error) === "ERR_BUFFER_TOO_LARGE") throw new ContentTooLarge()
    throw error
  }
}
