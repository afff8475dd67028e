/** Stands before a server and lets only so many decisions pass: who asks for more waits, however long the test takes to come to it. */
import { type Server, createServer, request as httpRequest } from "node:http"
import type { AddressInfo } from "node:net"

export interface LabelGate {
  readonly url: string
  /** From now on so many pass. */
  allow(passing: number): void
  close(): Promise<void>
}

export async function openLabelGate(to: string): Promise<LabelGate> {
  let left = 0
  const gate: Server = createServer((incoming, outgoing) => {
    if (incoming.url === "/v1/decisions" && left-- <= 0) return
    const { method, headers, url = "/" } = incoming
    const onward = httpRequest(new URL(url, to), { method, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(outgoing)
    })
    onward.on("error", () => outgoing.destroy())
    // Who asked may be killed meanwhile: the server is to see that too.
    outgoing.once("close", () => {
      if (!outgoing.writableFinished) onward.destroy()
    })
    incoming.pipe(onward)
  })
  await new Promise<void>((resolve) => gate.listen(0, "127.0.0.1", resolve))
  // True for a TCP server that listens.
  const { port } = gate.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    allow: (passing) => void (left = passing),
    close: async () => {
      gate.closeAllConnections()
      await new Promise((resolve) => gate.close(resolve))
    },
  }
}
