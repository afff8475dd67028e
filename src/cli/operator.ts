/** The operator's connection to the installation: a client of its endpoints over the running server's socket. */
import { type Server, request } from "node:http"
import { createConnection } from "node:net"
import { type Duplex, duplexPair } from "node:stream"
import { type Fetcher, type OperatorClient, clientOf } from "../contract/client.ts"
import { Fault } from "../contract/errors.ts"
import { operatorTable } from "../contract/operator.ts"

export interface Operator {
  readonly client: OperatorClient
  close(): Promise<void>
}

/** Null when nothing listens there. */
export async function connectOperator(address: string): Promise<Operator | null> {
  if (!(await isListening(address))) return null
  return { client: operatorClient(() => createConnection(address)), close: async () => undefined }
}

/** Of a server in this process, which need not listen. */
export const clientWithin = (server: Server): OperatorClient =>
  operatorClient(() => {
    const [near, far] = duplexPair()
    server.emit("connection", far)
    return near
  })

/** Each request has a connection of its own. */
const operatorClient = (connect: () => Duplex): OperatorClient =>
  clientOf(operatorTable, { baseUrl: "http://operator", headers: {}, fetcher: fetchOver(connect) })

const foreignUser = (): Fault =>
  new Fault(
    "permission_denied",
    "Cannot reach the server: its data directory belongs to another user; run the command as that user",
  )

async function isListening(address: string): Promise<boolean> {
  return await new Promise((resolve, reject) => {
    const socket = createConnection(address, () => {
      socket.destroy()
      resolve(true)
    })
    socket.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT" || error.code === "ECONNREFUSED") resolve(false)
      else if (error.code === "EACCES" || error.code === "EPERM") reject(foreignUser())
      else reject(error)
    })
  })
}

const fetchOver =
  (connect: () => Duplex): Fetcher =>
  async (url, { method, headers, body }) =>
    await new Promise((resolve, reject) => {
      const fail = (cause?: unknown): void => reject(broken(cause))
      // The client gives its headers as an object, and its body as a text.
      const given = { method, headers: headers as Record<string, string>, createConnection: connect }
      const sent = request(url, given, (answer) => {
        const chunks: Buffer[] = []
        answer.on("data", (chunk: Buffer) => chunks.push(chunk)).on("error", fail)
        answer.on("end", () => {
          const status = answer.statusCode ?? 0
          resolve(new Response(status === 204 ? null : Buffer.concat(chunks), { status }))
        })
      })
      sent.on("error", fail).end(body)
    })

const broken = (cause: unknown): Error =>
  new Error(
    "Cannot tell whether the command took effect: the server stopped before it answered; check, and run the command again if it did not",
    { cause },
  )
