/** The worker behind the library in a browser, which fetches the model once: what has the right hash stays in the browser's cache. */
import "../contract/zod-without-eval.ts"
import { sha256 as hashOf } from "../base/hash.ts"
import { createReceiver } from "../base/peer/handlers.ts"
import type { Handlers, ToPeer } from "../base/peer/peer.ts"
import { Fault } from "../contract/errors.ts"
import { openEncoder } from "../engine/encoder/open-in-browser.ts"
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

type Bytes = Uint8Array<ArrayBuffer>

/** What of a browser is used here; Node's types do not have it. */
interface WebCache {
  match(address: string): Promise<Response | undefined>
  put(address: string, response: Response): Promise<void>
  keys(): Promise<readonly { readonly url: string }[]>
  delete(address: string): Promise<boolean>
}
declare const caches: { open(name: string): Promise<WebCache> } | undefined

const cacheName = "umpire-models"

/** Throws Error for what cannot be fetched or is another file. Without a hash nothing is checked or kept. */
async function fetchModel(address: string, sha256: string | null): Promise<Bytes> {
  if (sha256 === null) return await fetchBytes(address)
  // Only of pages that are served safely.
  if (typeof caches === "undefined") throw new Error("the page must come by https or from localhost")
  // Another version has another address, so that what lies between may keep it for ever.
  const named = new URL(address)
  named.searchParams.set("sha256", sha256)
  // A browser may refuse to store anything.
  const cache = await caches.open(cacheName).catch(() => null)
  const kept = await cache?.match(named.href)
  const known = kept && new Uint8Array(await kept.arrayBuffer())
  if (known && (await hashOf(known)) === sha256) return known
  const bytes = await fetchBytes(named.href)
  if ((await hashOf(bytes)) !== sha256)
    throw new Error("its hash is another: it is not the model of this version, or was changed on its way")
  if (cache) await replace(cache, named, bytes).catch(() => undefined)
  return bytes
}

/** Of one address one version is kept. */
async function replace(cache: WebCache, named: URL, bytes: Bytes): Promise<void> {
  for (const { url } of await cache.keys()) {
    const { origin, pathname } = new URL(url)
    if (origin === named.origin && pathname === named.pathname) await cache.delete(url)
  }
  await cache.put(named.href, new Response(bytes))
}

async function fetchBytes(address: string): Promise<Bytes> {
  const response = await fetch(address).catch((cause: unknown) => {
    throw new Error("it cannot be fetched", { cause })
  })
  if (!response.ok) throw new Error(`it cannot be fetched: the answer is ${response.status}`)
  return new Uint8Array(await response.arrayBuffer())
}
