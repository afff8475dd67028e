/** What the messages of one WebSocket hold, leased as their bytes come and not only when they are whole. */
import type { Fault } from "../contract/errors.ts"
import type { ByteLease } from "./byte-budget.ts"
import { BodyRate } from "./body.ts"
import { asFault } from "./reply.ts"

/** Of the head of a frame (RFC 6455, section 5.2): the least, and what is added. */
const headBytesMin = 2
const maskBytes = 4
/** What the length in the second byte of a head stands for, from 126 on: a length of so many bytes that follows. */
const longLengthBytes: Readonly<Record<number, number>> = { 126: 2, 127: 8 }
const closeOpcode = 0x8

/** Every frame, and every part that one comes in, is an object until the message is whole: 140 to 300 bytes as measured. */
export const pieceBytes = 256

export interface LeasedMessage {
  readonly lease: ByteLease
  /** Why there was no room for it. */
  readonly fault: Fault | null
}

class ArrivingMessage implements LeasedMessage {
  readonly lease: ByteLease
  readonly rate: BodyRate
  #payloadBytes = 0
  #fault: Fault | null = null

  constructor(lease: ByteLease, rate: BodyRate) {
    this.lease = lease
    this.rate = rate
  }

  get fault(): Fault | null {
    return this.#fault
  }

  get payloadBytes(): number {
    return this.#payloadBytes
  }

  /** A frame of it will come: it is refused before it is held. */
  announce(payloadBytes: number): void {
    this.#payloadBytes += payloadBytes
    this.#try(() => this.lease.announce(this.#payloadBytes))
  }

  take(bytes: number): void {
    this.#try(() => this.lease.take(bytes))
  }

  #try(act: () => void): void {
    if (this.#fault !== null) return
    try {
      act()
    } catch (error) {
      this.#fault = asFault(error)
    }
  }
}

interface MessageDeps {
  readonly payloadBytesMax: number
  lease(): ByteLease
  /** The unfinished message comes slower than a body may. */
  tellSlow(): void
}

/** Reads frames only so far as to tell where messages begin and end; that they are valid is for their parser to say. */
export class MessageLeases {
  readonly #deps: MessageDeps
  readonly #head: number[] = []
  readonly #whole: ArrivingMessage[] = []
  #unfinished: ArrivingMessage | null = null
  #payloadLeft = 0
  #isControl = false
  #isFinal = false
  #isOver = false

  constructor(deps: MessageDeps) {
    this.#deps = deps
  }

  /** The message of which only a part has come. */
  get unfinished(): LeasedMessage | null {
    return this.#unfinished
  }

  /** What came next on the connection. */
  read(chunk: Uint8Array): void {
    if (this.#isOver) return
    this.#unfinished?.take(pieceBytes)
    for (let at = 0; at < chunk.length && !this.#isOver;)
      at += this.#payloadLeft > 0 ? this.#readPayload(chunk.length - at) : this.#readHead(chunk[at] ?? 0)
    this.#unfinished?.rate.begin()
  }

  /** The next message that is whole, in the order in which they came. */
  shift(): LeasedMessage | undefined {
    return this.#whole.shift()
  }

  /** Nothing that follows is a message; what is held stays held. */
  stop(): void {
    this.#isOver = true
    this.#unfinished?.rate.end()
  }

  /** Gives back what was not handed out. */
  close(): void {
    this.stop()
    this.#unfinished?.lease.close()
    for (const { lease } of this.#whole.splice(0)) lease.close()
  }

  #readPayload(bytesMax: number): number {
    const bytes = Math.min(bytesMax, this.#payloadLeft)
    this.#payloadLeft -= bytes
    this.#count(bytes)
    if (this.#payloadLeft === 0) this.#endFrame()
    return bytes
  }

  #readHead(byte: number): number {
    const head = this.#head
    head.push(byte)
    const [first = 0, second = 0] = head
    const isMasked = (second & 0x80) !== 0
    const lengthBytes = longLengthBytes[second & 0x7f] ?? 0
    if (head.length < headBytesMin + lengthBytes + (isMasked ? maskBytes : 0)) return 1
    const length = head
      .slice(headBytesMin, headBytesMin + lengthBytes)
      .reduce((sum, next) => sum * 256 + next, 0)
    this.#beginFrame(first, lengthBytes === 0 ? second & 0x7f : length)
    head.length = 0
    return 1
  }

  #beginFrame(first: number, payloadBytes: number): void {
    const opcode = first & 0x0f
    this.#isFinal = (first & 0x80) !== 0
    this.#isControl = opcode >= closeOpcode
    this.#payloadLeft = payloadBytes
    if (opcode === closeOpcode) return this.stop()
    if (!this.#isControl) {
      this.#unfinished ??= new ArrivingMessage(this.#deps.lease(), new BodyRate(() => this.#deps.tellSlow()))
      // The parser refuses it with the same bytes.
      if (this.#unfinished.payloadBytes + payloadBytes > this.#deps.payloadBytesMax) return this.stop()
      this.#unfinished.announce(payloadBytes)
      this.#unfinished.take(pieceBytes)
      this.#count(this.#head.length)
    }
    if (payloadBytes === 0) this.#endFrame()
  }

  #count(bytes: number): void {
    if (this.#isControl || !this.#unfinished) return
    this.#unfinished.take(bytes)
    this.#unfinished.rate.add(bytes)
  }

  #endFrame(): void {
    if (this.#isControl || !this.#isFinal || !this.#unfinished) return
    this.#unfinished.rate.end()
    this.#whole.push(this.#unfinished)
    this.#unfinished = null
  }
}
