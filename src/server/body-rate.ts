/** The rate at which a client must send: the body of a request, or a message of a WebSocket. */
import { Fault } from "../contract/errors.ts"

/** Over the last 15 s a body must have come at 1 KiB/s: a slower client is disconnected, whatever it sent before. */
export const bodyWindowMs = 15_000
export const bodyBytesPerMsMin = 1024 / 1000

/** A body that came slower than the minimum rate. */
export class SlowBody extends Fault {
  constructor() {
    super("invalid_request", "Cannot read the request: its body came too slowly")
  }
}

/** Of one body: tells once that it came too slowly. */
export class BodyRate {
  readonly #tellSlow: () => void
  #slowAtMs = 0
  #timer: NodeJS.Timeout | undefined

  constructor(tellSlow: () => void) {
    this.#tellSlow = tellSlow
  }

  begin(): void {
    if (this.#timer) return
    this.#slowAtMs = performance.now() + bodyWindowMs
    this.#timer = setTimeout(() => this.#check(), bodyWindowMs)
  }

  add(bytes: number): void {
    this.#slowAtMs = Math.min(performance.now() + bodyWindowMs, this.#slowAtMs + bytes / bodyBytesPerMsMin)
  }

  end(): void {
    clearTimeout(this.#timer)
  }

  #check(): void {
    const leftMs = this.#slowAtMs - performance.now()
    if (leftMs > 0) this.#timer = setTimeout(() => this.#check(), leftMs)
    else this.#tellSlow()
  }
}
