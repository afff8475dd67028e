/** Ports for servers that must be told theirs, or that are started again on the same one. */
import { createServer } from "node:net"

/** Below those that systems hand out by themselves, so that no other process gets the port by chance while it is not listened on. */
const first = 20_000
const last = 32_000

export async function freePort(host = "127.0.0.1"): Promise<number> {
  for (;;) {
    const port = first + Math.floor(Math.random() * (last - first))
    const server = createServer()
    const isFree = await new Promise<boolean>((resolve) => {
      server.once("error", () => resolve(false)).listen(port, host, () => resolve(true))
    })
    await new Promise((resolve) => server.close(resolve))
    if (isFree) return port
  }
}
