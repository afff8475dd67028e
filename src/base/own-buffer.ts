/**
 * Bytes that have a buffer for themselves can be handed over or freed at once. What waits for V8 to collect it does not only take memory:
 * V8 marks the whole heap when so many bytes outside of it came to be, on all processors, and bodies of requests are many.
 */

/** False where other bytes are in the same buffer. */
export const ownsBuffer = (bytes: Uint8Array): bytes is Uint8Array<ArrayBuffer> =>
  bytes.buffer instanceof ArrayBuffer && bytes.buffer.byteLength === bytes.byteLength

export const ownBuffers = (bytes: Uint8Array): ArrayBuffer[] => (ownsBuffer(bytes) ? [bytes.buffer] : [])

/** Of bytes that are read no more: they are empty afterwards. */
export function freeBytes(bytes: Uint8Array): void {
  for (const buffer of ownBuffers(bytes)) freeBuffer(buffer)
}

export function freeBuffer(buffer: ArrayBuffer): void {
  if (!buffer.detached) buffer.transfer(0)
}
