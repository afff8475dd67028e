/** The operator's way in: a local socket that only the owner of the data directory can open, for `umpire` commands. */
import { chmod, rm } from "node:fs/promises"
import { type Server, type Socket, createServer } from "node:net"
import { Fault } from "../contract/errors.ts"
import type { Log } from "../base/log.ts"

/** Named operations on plain JSON values; they check their own input. */
export type Operations = Readonly<Record<string, (input: unknown) => Promise<unknown>>>

const requestBytesMax = 1024 * 1024
/** Until a connection has said what it wants; what it then waits for may take hours. */
const idleTimeoutMsDefault = 60_000

interface OperatorSocket {
  close(): Promise<void>
}

/** Windows has no socket files; a named pipe of the same meaning is used there. */
export function operatorAddress(dataDirectory: string): string {
  if (process.platform !== "win32") return `${dataDirectory}/operator.sock`
  return `\\\\.\\pipe\\umpire-${dataDirectory.replaceAll(/[^\w]+/g, "-")}`
}

/** Each connection sends one line of JSON, `{operation, input}`, and gets one line back, `{result}` or `{error}`. */
export async function openOperatorSocket(
  address: string,
  operations: Operations,
  log: Log,
  idleTimeoutMs = idleTimeoutMsDefault,
): Promise<OperatorSocket> {
  if (process.platform !== "win32") await rm(address, { force: true })
  const server = createServer((socket) => {
    socket.setTimeout(idleTimeoutMs, () => socket.destroy())
    serve(socket, operations, log)
  })
  await new Promise<void>((resolve, reject) => server.once("error", reject).listen(address, resolve))
  if (process.platform !== "win32") await chmod(address, 0o600)
  return { close: async () => await close(server) }
}

function serve(socket: Socket, operations: Operations, log: Log): void {
  let text = ""
  socket.setEncoding("utf8")
  socket.on("error", (error) => log.debug({ err: error }, "an operator connection broke"))
  socket.on("data", (chunk: string) => {
    text += chunk
    if (text.length > requestBytesMax) socket.destroy()
    const end = text.indexOf("\n")
    if (end < 0) return
    socket.pause()
    socket.setTimeout(0)
    void answer(text.slice(0, end), operations, log).then((line) => socket.end(line))
  })
}

async function answer(line: string, operations: Operations, log: Log): Promise<string> {
  try {
    const { operation, input } = JSON.parse(line) as { operation?: unknown; input?: unknown }
    const run =
      typeof operation === "string" && Object.hasOwn(operations, operation)
        ? operations[operation]
        : undefined
    if (!run)
      throw new Fault(
        "invalid_request",
        "Cannot run the command: the running server does not know it; is it an older version?",
      )
    return `${JSON.stringify({ result: (await run(input)) ?? null })}\n`
  } catch (error) {
    if (!(error instanceof Fault)) log.error({ err: error }, "an operator command failed")
    const message = error instanceof Error ? error.message : "Cannot run the command"
    return `${JSON.stringify({ error: { message } })}\n`
  }
}

async function close(server: Server): Promise<void> {
  await new Promise<void>((resolve) => server.close(() => resolve()))
}
