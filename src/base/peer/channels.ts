/** Channels to a child process and to a worker thread. */
import { fork } from "node:child_process"
import { Worker, type WorkerOptions } from "node:worker_threads"
import type { Channel } from "./peer.ts"

export interface ChildOptions {
  /** The Node to run it with, where it is not this one. */
  readonly execPath?: string | undefined
}

/** What a child wrote to stderr before it ended, for the reason of its end. */
const lastWordsMax = 2000

/** The child's stderr is passed on to this process's, and its end is the reason where the child crashes. */
export function childChannel(entry: URL, { execPath }: ChildOptions = {}): Channel {
  const child = fork(entry, {
    serialization: "advanced",
    execArgv: [],
    stdio: ["ignore", "ignore", "pipe", "ipc"],
    ...(execPath === undefined ? {} : { execPath }),
  })
  let lastWords = ""
  child.stderr?.on("data", (chunk: Buffer) => {
    process.stderr.write(chunk)
    lastWords = (lastWords + chunk.toString()).slice(-lastWordsMax)
  })
  return {
    pid: child.pid,
    send: (message) => {
      // A message that was taken and then not delivered is followed by the end of the child.
      child.send(message, () => undefined)
    },
    listen(onMessage, onEnd) {
      child.on("message", onMessage)
      // One that closed its channel cannot be reached any more; its exit follows.
      child.on("disconnect", () => child.kill("SIGKILL"))
      child.on("error", (error) => onEnd(`it could not be started or reached: ${error.message}`))
      child.on("exit", (code, signal) => onEnd(`${signal ?? `status ${code}`} ${lastWords}`.trim()))
    },
    kill: () => void child.kill("SIGKILL"),
  }
}

export function threadChannel(entry: URL, options: WorkerOptions = {}): Channel {
  const worker = new Worker(entry, options)
  let lastError = "its thread ended"
  return {
    pid: undefined,
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker thread has no origin
    send: (message) => worker.postMessage(message),
    listen(onMessage, onEnd) {
      worker.on("message", onMessage)
      // An exit follows.
      worker.on("error", (error) => (lastError = error instanceof Error ? error.message : String(error)))
      worker.on("exit", () => onEnd(lastError))
    },
    kill: () => void worker.terminate(),
    keepAlive: (needed) => (needed ? worker.ref() : worker.unref()),
  }
}
