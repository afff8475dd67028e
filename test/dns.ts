/** A name server for tests: answers every name with the addresses that it was told last, as Docker's does for a service. */
import { createSocket } from "node:dgram"
import { once } from "node:events"

export interface TestNameServer {
  readonly port: number
  /** From now on names stand for these. */
  answer(addresses: readonly string[]): void
  close(): Promise<void>
}

const headerBytes = 12
/** A response that was asked for with recursion, without an error. */
const flags = 0x8180
/** Type A, class IN, of no age, four bytes; the name is that of the question, which begins behind the header. */
const record = Buffer.from([0xc0, headerBytes, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4])

export async function startNameServer(): Promise<TestNameServer> {
  let known: readonly string[] = []
  const socket = createSocket("udp4")
  socket.on("message", (question, { port, address }) => socket.send(answerTo(question, known), port, address))
  socket.bind(0, "127.0.0.1")
  await once(socket, "listening")
  return {
    port: socket.address().port,
    answer: (addresses) => void (known = addresses),
    close: async () => await new Promise((resolve) => socket.close(() => resolve())),
  }
}

/** RFC 1035, section 4. */
function answerTo(question: Buffer, addresses: readonly string[]): Buffer {
  // The labels of the name, their end, and two numbers of two bytes.
  const end = question.indexOf(0, headerBytes) + 1 + 4
  const header = Buffer.from(question.subarray(0, headerBytes))
  for (const [at, value] of [flags, 1, addresses.length, 0, 0].entries())
    header.writeUInt16BE(value, 2 + 2 * at)
  const records = addresses.flatMap((address) => [record, Buffer.from(address.split(".").map(Number))])
  return Buffer.concat([header, question.subarray(headerBytes, end), ...records])
}
