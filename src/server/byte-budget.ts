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
  readonly #claimed = new Map<string, number>()
  #bytes = 0

  constructor(bytesMax = defaultBudgetBytes()) {
    this.bytesMax = bytesMax
  }

  get heldBytes(): number {
    return this.#bytes
  }

  lease(): ByteLease {
    return new ByteLease({
      hasRoom: (holder, more, total) => this.#hasRoom(holder, more, total),
      add: (holder, more) => this.#add(holder, more),
    })
  }

  #hasRoom(holder: string, more: Bytes, total: number): boolean {
    if (total <= smallBytes) return this.#bytes + more.held <= this.bytesMax
    const ofLarge = this.bytesMax * (1 - smallShare)
    const ofHolder = (this.#claimed.get(holder) ?? 0) + more.claimed
    return this.#bytes + more.held <= ofLarge && ofHolder <= ofLarge * holderShare
  }

  #add(holder: string, { held, claimed }: Bytes): void {
    this.#bytes += held
    const all = (this.#claimed.get(holder) ?? 0) + claimed
    if (all > 0) this.#claimed.set(holder, all)
    else this.#claimed.delete(holder)
  }
}

interface Bytes {
  /** In memory. */
  readonly held: number
  /** Those, or as many as the body will have: they are taken from the holder's share alone. */
  readonly claimed: number
}

interface Account {
  hasRoom(holder: string, more: Bytes, total: number): boolean
  add(holder: string, more: Bytes): void
}

/** What one request holds. */
export class ByteLease {
  /** The organization, user or address that the bytes are counted for. */
  holder = ""
  readonly #account: Account
  #bytes = 0
  #announced = 0
  #isClosed = false

  constructor(account: Account) {
    this.#account = account
  }

  /**
   * A body of this size will come, or more than was announced before: it is refused before it is read where its holder has no room left for all of it. Otherwise many
   * that come at once would fill the room together, and each would be refused when most of it had been read.
   */
  announce(bytes: number): void {
    const more = this.#more(this.#bytes, bytes)
    if (!this.#account.hasRoom(this.holder, { ...more, held: bytes - this.#bytes }, bytes))
      throw overCapacity()
    this.#account.add(this.holder, more)
    this.#announced = bytes
  }

  /** More of a body, or less. */
  take(bytes: number): void {
    const total = this.#bytes + bytes
    if (bytes > 0 && !this.#account.hasRoom(this.holder, this.#more(total), total)) throw overCapacity()
    this.add(bytes)
  }

  /** Counts so many in all; false, and as many as before, where there is no room for more. */
  resize(bytes: number): boolean {
    const more = this.#more(bytes)
    if (more.held > 0 && !this.#account.hasRoom(this.holder, more, bytes)) return false
    this.add(more.held)
    return true
  }

  /** An answer: it is there, and counts against the bodies that come. */
  add(bytes: number): void {
    if (this.#isClosed) return
    this.#account.add(this.holder, this.#more(this.#bytes + bytes))
    this.#bytes += bytes
  }

  /** What is added later, as the refusal that a client who is gone does not get, is not counted. */
  close(): void {
    this.#account.add(this.holder, this.#more(0, 0))
    this.#bytes = 0
    this.#announced = 0
    this.#isClosed = true
  }

  #more(bytes: number, announced = this.#announced): Bytes {
    const claimed = Math.max(bytes, announced) - Math.max(this.#bytes, this.#announced)
    return { held: bytes - this.#bytes, claimed }
  }
}

const overCapacity = (): Fault =>
  new Fault(
    "over_capacity",
    "Cannot read the body: the server holds as many bytes of requests as it may; try again later",
    { retryAfterMs },
  )
