/**
 * One budget for the bytes of requests and answers that this process holds: bodies that are being read, decoded or worked on, and
 * answers that are being written. Above it bodies are refused, so that memory is never what refuses them.
 */
import { totalmem } from "node:os"
import { Fault } from "../contract/errors.ts"

const mebibyte = 1024 * 1024
/** What every machine has, and what no machine needs more of. */
const defaultBytesMin = 128 * mebibyte
const defaultBytesMax = 1024 * mebibyte
const memoryShare = 1 / 64

/** By the size of the machine, or of the container. */
export function defaultBudgetBytes(): number {
  // Zero where nothing limits the process; as large as an address can be where the system says it so.
  const memory = Math.min(totalmem(), process.constrainedMemory() || Infinity)
  return Math.round(Math.min(defaultBytesMax, Math.max(defaultBytesMin, memory * memoryShare)))
}

/** A body of up to this size may use all of the budget. */
const smallBytes = 64 * 1024
/** What larger ones leave to these. */
const smallShare = 1 / 8
/** What one organization may hold of the rest. */
const holderShare = 1 / 2
const retryAfterMs = 1_000

export class ByteBudget {
  readonly bytesMax: number
  readonly #held = new Map<string, number>()
  #bytes = 0

  constructor(bytesMax = defaultBudgetBytes()) {
    this.bytesMax = bytesMax
  }

  get heldBytes(): number {
    return this.#bytes
  }

  lease(): ByteLease {
    return new ByteLease({
      hasRoom: (holder, bytes, total) => this.#hasRoom(holder, bytes, total),
      add: (holder, bytes) => this.#add(holder, bytes),
    })
  }

  #hasRoom(holder: string, bytes: number, total: number): boolean {
    if (total <= smallBytes) return this.#bytes + bytes <= this.bytesMax
    const ofLarge = this.bytesMax * (1 - smallShare)
    const ofHolder = (this.#held.get(holder) ?? 0) + bytes
    return this.#bytes + bytes <= ofLarge && ofHolder <= ofLarge * holderShare
  }

  #add(holder: string, bytes: number): void {
    this.#bytes += bytes
    const held = (this.#held.get(holder) ?? 0) + bytes
    if (held > 0) this.#held.set(holder, held)
    else this.#held.delete(holder)
  }
}

interface Account {
  hasRoom(holder: string, bytes: number, total: number): boolean
  add(holder: string, bytes: number): void
}

/** What one request holds. */
export class ByteLease {
  /** The organization, user or address that the bytes are counted for. */
  holder = ""
  readonly #account: Account
  #bytes = 0
  #isClosed = false

  constructor(account: Account) {
    this.#account = account
  }

  /** Refuses a body of this size before it is read; it is counted as it comes. */
  check(bytes: number): void {
    if (!this.#account.hasRoom(this.holder, bytes, this.#bytes + bytes)) throw overCapacity()
  }

  /** More of a body, or less. */
  take(bytes: number): void {
    if (bytes > 0) this.check(bytes)
    this.add(bytes)
  }

  /** An answer: it is there, and counts against the bodies that come. */
  add(bytes: number): void {
    if (this.#isClosed) return
    this.#bytes += bytes
    this.#account.add(this.holder, bytes)
  }

  /** What is added later, as the refusal that a client who is gone does not get, is not counted. */
  close(): void {
    this.add(-this.#bytes)
    this.#isClosed = true
  }
}

const overCapacity = (): Fault =>
  new Fault(
    "over_capacity",
    "Cannot read the body: the server holds as many bytes of requests as it may; try again later",
    { retryAfterMs },
  )
