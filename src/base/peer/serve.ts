/** Serves a peer in a thread or child process of Node. */
import { parentPort } from "node:worker_threads"
import { type ServeSettings, createReceiver } from "./handlers.ts"
import type { Handlers, Service, ToPeer } from "./peer.ts"

/** Called once by the module that a thread or a child process starts with. */
export function servePeer<S extends Service<S>>(handlers: Handlers<S>, settings: ServeSettings = {}): void {
  if (parentPort) {
    const port = parentPort
    const receive = createReceiver(handlers, settings, (message) => port.postMessage(message))
    // Only this room's Connection is at the other end.
    port.on("message", (message) => receive(message as ToPeer))
    return
  }
  const receive = createReceiver(handlers, settings, (message) => {
    // A parent that is gone reads nothing; the disconnect event ends this process.
    if (process.connected) process.send?.(message, undefined, undefined, () => undefined)
  })
  process.on("message", (message) => receive(message as ToPeer))
  process.on("disconnect", endProcess)
  // The parent decides when this process ends; a Ctrl-C in the terminal reaches the whole group.
  process.on("SIGINT", () => undefined)
  process.on("SIGTERM", () => undefined)
}

/** Without exit handlers: those of native libraries may crash, and everything that was answered has left. */
export function endProcess(): void {
  process.kill(process.pid, "SIGKILL")
}
