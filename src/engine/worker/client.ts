/** The engines of a model at an Umpire worker, as a gateway sees them. */
import { findMismatch, httpPeer, protocolHeader } from "../../base/peer/http.ts"
import { type EngineClient, engineClient } from "../engine-client.ts"
import type { EngineService } from "../engine-service.ts"

interface WorkerAddress {
  readonly url: string
  /** What the worker calls the model. */
  readonly model: string
  readonly key: string | undefined
}

export interface WorkerClient extends EngineClient {
  /** Rejects when the worker cannot serve now. */
  readonly check: (signal: AbortSignal) => Promise<void>
}

export function workerClient({ url, model, key }: WorkerAddress): WorkerClient {
  const peer = httpPeer<EngineService>({ url: new URL(workPath, url), protocol: protocolVersion, key })
  return {
    ...engineClient(peer, model),
    async check(signal) {
      const response = await fetch(new URL(healthPath, url), { signal })
      await response.body?.cancel()
      if (!response.ok) throw new Error(`the worker answers ${response.status}`)
      const mismatch = findMismatch(response.headers.get(protocolHeader), protocolVersion)
      if (mismatch !== null) throw new Error(mismatch)
    },
  }
}

/** Every call is posted here; a GET of the health path says whether the worker serves. */
export const workPath = "/umpire/work"
export const healthPath = "/healthz"
/** It changes when a gateway and a worker would misunderstand each other. */
export const protocolVersion = "4"
