/** Runs an operator's command: through the running server's socket, or on the store itself when no server runs. */
import { createConnection } from "node:net"
import { Fault } from "../contract/errors.ts"

export type Operate = (operation: string, input: unknown) => Promise<unknown>

/** Returns undefined when nothing listens there. */
export async function operateOverSocket(
  address: string,
  operation: string,
  input: unknown,
): Promise<{ result: unknown } | undefined> {
  const reply = await exchange(address, `${JSON.stringify({ operation, input })}\n`)
  if (reply === undefined) return undefined
  // A whole reply is one line.
  if (!reply.endsWith("\n")) throw broken()
  const { result, error } = JSON.parse(reply) as { result?: unknown; error?: { message: string } }
  if (error) throw new Fault("invalid_request", error.message)
  return { result }
}

async function exchange(address: string, line: string): Promise<string | undefined> {
  return await new Promise((resolve, reject) => {
    let text = ""
    const socket = createConnection(address, () => socket.write(line))
    socket.setEncoding("utf8")
    socket.on("data", (chunk: string) => (text += chunk))
    socket.on("end", () => resolve(text))
    socket.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT" || error.code === "ECONNREFUSED") resolve(undefined)
      else reject(broken(error))
    })
  })
}

const broken = (cause?: unknown): Error =>
  new Error(
    "Cannot tell whether the command took effect: the server stopped before it answered; check, and run the command again if it did not",
    { cause },
  )
