/**
 * The largest text that this thread has parsed as JSON or checked by a schema. Every thread has its own: that of the main thread
 * shows that nothing large is read on the event loop.
 */
let largestBytes = 0

export function noteReadSize(bytes: number): void {
  if (bytes > largestBytes) largestBytes = bytes
}

export const largestReadBytes = (): number => largestBytes
