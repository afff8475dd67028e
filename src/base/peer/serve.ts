/** Serves a peer in a thread or child process of Node. */
import { flushCompileCache } from "node:module"
import { parentPort } from "node:worker_threads"
import { type ServeSettings, createReceiver } from "./handlers.ts"
import type { FromPeer, Handlers, Service, ToPeer } from "./peer.ts"

/** Called once by the module that a thread or a child process starts with. */
export function servePeer<S extends Service<S>>(handlers: Handlers<S>, settings: ServeSettings = {}): void {
  if (parentPort) {
    const port = parentPort
    const givenOf = (message: FromPeer): readonly ArrayBuffer[] =>
      message.kind === "output" ? (settings.given?.(message.output) ?? []) : []
    const receive = createReceiver(
      handlers,
      settings,
      keepingCompiled((message) => port.postMessage(message, [...givenOf(message)])),
    )
    // Only this room's Connection is at the other end.
    port.on("message", (message) => receive(message as ToPeer))
    return
  }
  const receive = createReceiver(
    handlers,
    settings,
    keepingCompiled((message) => {
      // A parent that is gone reads nothing; the disconnect event ends this process.
      if (process.connected) process.send?.(message, undefined, undefined, () => undefined)
    }),
  )
  process.on("message", (message) => receive(message as ToPeer))
  process.on("disconnect", endProcess)
  // The parent decides when this process ends; a Ctrl-C in the terminal reaches the whole group.
  process.on("SIGINT", () => undefined)
  process.on("SIGTERM", () => undefined)
}

/**
 * Once it has answered, what was compiled for it is written to Node's compile cache, where there is one: peers are killed, and Node
 * writes only when a process ends by itself.
 */
function keepingCompiled(send: (message: FromPeer) => void): typeof send {
  let kept = false
  return (message) => {
    send(message)
    if (kept || message.kind !== "output") return
    kept = true
    setImmediate(flushCompileCache)
  }
}

/** Without exit handlers: those of native libraries may crash, and everything that was answered has left. */
export function endProcess(): void {
  process.kill(process.pid, "SIGKILL")
}
