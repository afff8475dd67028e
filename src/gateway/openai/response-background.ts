/** Responses that go on after their request was answered: a bounded number of each organization, each within the time of a request. */
import type { RequestFacts } from "../../contract/endpoint.ts"
import { Fault } from "../../contract/errors.ts"

/** Of one organization, on one gateway. */
const runningMax = 64

/** The signal of a request, until the work no longer needs who asked. */
export class DetachableRequest {
  readonly facts: RequestFacts
  readonly #client: AbortSignal
  readonly #controller = new AbortController()
  readonly #follow = (): void => this.abort(this.#client.reason)

  constructor(facts: RequestFacts) {
    this.#client = facts.signal
    // Its method needs the object that has it.
    this.facts = { ...facts, header: (name) => facts.header(name), signal: this.#controller.signal }
    if (this.#client.aborted) this.#follow()
    else this.#client.addEventListener("abort", this.#follow, { once: true })
  }

  detach(): void {
    this.#client.removeEventListener("abort", this.#follow)
  }

  abort(reason: unknown): void {
    this.#controller.abort(reason)
  }
}

interface RunningWork {
  readonly request: DetachableRequest
  readonly ended: Promise<void>
}

export class BackgroundWork {
  readonly #timeoutMs: number
  readonly #running = new Map<string, Set<RunningWork>>()
  #isClosed = false

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs
  }

  /** Throws Fault `overloaded` when the organization has as many as it may. */
  check(organizationId: string): void {
    if (this.#isClosed) throw new Fault("not_ready", "Cannot begin: the server is stopping")
    if ((this.#running.get(organizationId)?.size ?? 0) < runningMax) return
    throw new Fault(
      "overloaded",
      `Cannot begin: ${runningMax} responses of the organization run in the background here; wait for one to end`,
      { retryAfterMs: 1_000 },
    )
  }

  /** From here on only the time of a request, and the end of the server, end the work. What it throws is on record already. */
  run(organizationId: string, request: DetachableRequest, work: () => Promise<unknown>): void {
    request.detach()
    const late = new Fault("inference_failed", "Cannot answer in time: the deadline of the request passed")
    const timer = setTimeout(() => request.abort(late), this.#timeoutMs).unref()
    const all = this.#running.get(organizationId) ?? new Set()
    this.#running.set(organizationId, all)
    const ended = work()
      .catch(() => undefined)
      .then(() => {
        clearTimeout(timer)
        all.delete(one)
        if (all.size === 0) this.#running.delete(organizationId)
      })
    const one = { request, ended }
    all.add(one)
  }

  /** Resolves when all have ended, which they do as failures. */
  async close(): Promise<void> {
    this.#isClosed = true
    const running = [...this.#running.values()].flatMap((all) => [...all])
    for (const { request } of running)
      request.abort(new Fault("not_ready", "Cannot go on: the server is stopping"))
    await Promise.all(running.map(async ({ ended }) => await ended))
  }
}
