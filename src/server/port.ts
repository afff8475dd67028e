/** Listening on a port, and whether that is possible, asked before anything is created. */
import { type AddressInfo, type Server, createServer } from "node:net"

/** The port is taken, or may not be used. */
export class PortUnavailable extends Error {
  override readonly name = "PortUnavailable"
}

/** Listens for a moment. Between this and the server's own listening another process may still take the port. */
export async function checkPort(host: string, port: number): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const probe = createServer()
      .once("error", (error: NodeJS.ErrnoException) => reject(unavailable(host, port, error)))
      .listen({ host, port }, () => probe.close(() => resolve()))
  })
}

/** Port 0 picks a free one. */
export async function listenOn(server: Server, host: string, port: number): Promise<AddressInfo> {
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject)
    server.listen({ host, port }, () => {
      server.off("error", reject)
      resolve()
    })
  })
  const address = server.address()
  if (address === null || typeof address === "string") throw new Error("Cannot listen: there is no port")
  return address
}

function unavailable(host: string, port: number, { code, message }: NodeJS.ErrnoException): PortUnavailable {
  const reasons: Readonly<Record<string, string>> = {
    EADDRINUSE: "another process uses the port; stop it, or choose a port with --port (0 picks a free one)",
    EACCES: "ports below 1024 need a privilege; choose another with --port",
    EADDRNOTAVAIL: "this machine has no such address; choose another with --host",
    ENOTFOUND: "the name has no address; choose another with --host",
  }
  return new PortUnavailable(`Cannot listen on ${host}:${port}: ${reasons[code ?? ""] ?? message}`)
}
