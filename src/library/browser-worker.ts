/** The worker behind the library in a browser. */
import "../contract/zod-without-eval.ts"
import { createReceiver } from "../base/peer/handlers.ts"
import type { Handlers, ToPeer } from "../base/peer/peer.ts"
import { Fault } from "../contract/errors.ts"
import { openEncoder } from "../engine/encoder/open-in-browser.ts"
import { fetchModel } from "./fetch-model.ts"
import { type LibraryService, libraryHandlers } from "./service.ts"

export interface BrowserModel {
  /** An address. */
  readonly model: string
  readonly sha256: string | null
  readonly threads: number
}

/** What of a worker is used here; Node's types do not have it. */
declare function postMessage(message: unknown): void
declare function addEventListener(type: "message", listener: (event: { readonly data: ToPeer }) => void): void

const handlers: Handlers<LibraryService<BrowserModel>> = {
  ...libraryHandlers(
    async ({ model, sha256, threads }: BrowserModel) =>
      await openEncoder(await fetchModel(model, sha256), { name: model, threads }),
  ),
  embed: () => {
    throw new Fault("invalid_request", "Cannot embed: there is no embedding model in a browser")
  },
}

const receive = createReceiver(handlers, {}, (message) => postMessage(message))
addEventListener("message", ({ data }) => receive(data))
