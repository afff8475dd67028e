/** `import { load } from "umpire/browser"`: decisions inside a web page, in a worker of its own. Texts do not leave the machine. */
import { type Channel, PeerGone } from "../base/peer/peer.ts"
import type { BrowserModel } from "./browser-worker.ts"
import type { BrowserLoadOptions, BrowserUmpire } from "./types.ts"
import { UmpireError } from "./error.ts"
import { UmpireThread, umpireOn } from "./umpire.ts"

export type * from "./types.ts"
export { UmpireError } from "./error.ts"

/** The model that ships. */
const shippedSha256 = "a2fc9f11155dc8ea718d8e3390a57f2295c2e1a7ad6c26b01b2df3b433ea101a"
const threadsMax = 4

/** What of a browser is used here; Node's types do not have it. */
interface WebWorker {
  postMessage(message: unknown): void
  terminate(): void
  addEventListener(
    type: "message" | "error",
    listener: (event: { readonly data: unknown; readonly message?: string }) => void,
  ): void
}
declare const Worker: new (address: URL, options: { readonly type: "module" }) => WebWorker

/** Fetches the model, once, and starts a worker; `close` ends it. */
export async function load({
  model = beside("umpire-decide-small.onnx"),
  sha256 = shippedSha256,
  threads = Math.min(navigator.hardwareConcurrency, threadsMax),
}: BrowserLoadOptions = {}): Promise<BrowserUmpire> {
  const worker = new Worker(beside("worker.js"), { type: "module" })
  const thread = new UmpireThread<BrowserModel>(workerChannel(worker))
  const address = new URL(model, import.meta.url).href
  return await umpireOn(thread, { model: address, sha256, threads }).catch((error: unknown) => {
    if (!(error instanceof UmpireError && error.cause instanceof PeerGone)) throw error
    throw new UmpireError(
      "unknown_model",
      `Cannot load the model: its worker could not be started (${error.cause.reason}); worker.js and what is beside it must come from the page's own origin`,
    )
  })
}

/** A build does not look for the file: it is where this module is served from. */
const beside = (name: string): URL => new URL(name, import.meta.url)

function workerChannel(worker: WebWorker): Channel {
  const { promise: closed, resolve: close } = Promise.withResolvers<void>()
  return {
    pid: undefined,
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker has no origin
    send: (message) => worker.postMessage(message),
    listen(onMessage, onEnd) {
      void closed.then(() => onEnd("it was closed"))
      worker.addEventListener("message", ({ data }) => onMessage(data))
      worker.addEventListener("error", ({ message = "it was not found" }) => {
        worker.terminate()
        onEnd(message)
      })
    },
    kill() {
      worker.terminate()
      close()
    },
  }
}
