/** A few peers for short work of many owners: started when needed, a bounded queue, one call for each owner at most. */
import { Fault } from "../../contract/errors.ts"
import { type ConnectionSettings, abortable, Connection } from "./connection.ts"
import type { CallName, Channel, Service } from "./peer.ts"

export interface PoolSettings extends ConnectionSettings {
  spawn(): Channel
  readonly peersMax?: number
  readonly waitingMax?: number
  /** How long a peer without work is kept; null keeps it. */
  readonly idleMsMax?: number | null
  /** Keeps a spare peer, so that no call waits for the restart of one that died. */
  readonly hasSpare?: boolean
}

export interface Pool<S extends Service<S>> {
  /** `overloaded` when too many wait. The signal ends the wait; work that has begun goes on to its end. */
  run<Name extends CallName<S>>(
    owner: string,
    method: Name,
    input: S[Name]["input"],
    signal?: AbortSignal,
  ): Promise<S[Name]["output"]>
  /** Starts the peers before they are needed. */
  warm(): void
  close(): Promise<void>
}

/** One owner's work takes one of them, so that there is another for everyone else. */
const peersMaxDefault = 2
const waitingMaxDefault = 64
/** One owner takes at most this share of the queue, so that its flood does not refuse everybody else. */
const ownerShare = 0.5
const idleMsMaxDefault = 60_000
/** Work in a pool is short; a thread answers no ping while it works. */
const watchDefaults = { silenceMsMax: 120_000, startMsMax: 60_000 }

interface Turn<S extends Service<S>> {
  readonly owner: string
  /** Never rejects. */
  run(connect: () => Connection<S>): Promise<void>
  refuse(error: Fault): void
}

export function createPool<S extends Service<S>>(settings: PoolSettings): Pool<S> {
  const { peersMax = peersMaxDefault, waitingMax = waitingMaxDefault, hasSpare = false } = settings
  const { idleMsMax = idleMsMaxDefault } = settings
  /** By owner; the one whose turn was longest ago is first. */
  const waiting = new Map<string, Turn<S>[]>()
  let waitingCount = 0
  let spare: Connection<S> | null = null
  let isClosed = false
  const connect = (): Connection<S> => {
    const start = (): Connection<S> => new Connection<S>(settings.spawn(), { ...watchDefaults, ...settings })
    const taken = spare?.alive ? spare : start()
    spare = hasSpare ? start() : null
    return taken
  }
  const seats = Array.from({ length: peersMax }, () => new Seat<S>(connect, idleMsMax))

  const take = (): Turn<S> | undefined => {
    for (const [owner, [turn, ...later]] of waiting) {
      if (seats.some((seat) => seat.owner === owner)) continue
      waiting.delete(owner)
      if (later.length > 0) waiting.set(owner, later)
      waitingCount--
      return turn
    }
    return undefined
  }
  const leave = (turn: Turn<S>): void => {
    const own = waiting.get(turn.owner) ?? []
    if (!own.includes(turn)) return
    waitingCount--
    if (own.length === 1) waiting.delete(turn.owner)
    else
      waiting.set(
        turn.owner,
        own.filter((other) => other !== turn),
      )
  }
  const next = (): void => {
    // One without a running peer takes a moment to get another: it comes last.
    const free = seats.filter(({ owner }) => owner === null)
    for (const seat of free.toSorted((a, b) => Number(b.isWarm) - Number(a.isWarm))) {
      const turn = take()
      if (!turn) return
      void seat.run(turn).then(next)
    }
  }

  return {
    async run(owner, method, input, signal) {
      signal?.throwIfAborted()
      if (isClosed) throw stopping()
      const own = waiting.get(owner) ?? []
      if (waitingCount >= waitingMax || own.length >= Math.ceil(waitingMax * ownerShare))
        throw new Fault("overloaded", "Cannot run the work: too many requests wait; try again later", {
          retryAfterMs: 1000,
        })
      const { promise, resolve, reject } = Promise.withResolvers<S[typeof method]["output"]>()
      const call = async (connection: () => Connection<S>): Promise<S[typeof method]["output"]> =>
        await connection().call(method, input)
      const turn = {
        owner,
        run: (connection: () => Connection<S>) => call(connection).then(resolve, reject),
        refuse: reject,
      }
      waiting.set(owner, [...own, turn])
      waitingCount++
      next()
      return await abortable(promise, signal, () => leave(turn))
    },
    warm: () => {
      if (!isClosed) for (const seat of seats) seat.connect()
    },
    async close() {
      isClosed = true
      for (const turn of [...waiting.values()].flat()) turn.refuse(stopping())
      waiting.clear()
      await Promise.all([spare?.close(), ...seats.map(async (seat) => await seat.close())])
    },
  }
}

/** A place for one peer, which comes and goes. */
class Seat<S extends Service<S>> {
  /** Whose work it does; null when it is free. */
  owner: string | null = null
  readonly #start: () => Connection<S>
  readonly #idleMsMax: number | null
  #connection: Connection<S> | null = null
  #idle: NodeJS.Timeout | undefined

  constructor(start: () => Connection<S>, idleMsMax: number | null) {
    this.#start = start
    this.#idleMsMax = idleMsMax
  }

  get isWarm(): boolean {
    return this.#connection?.alive ?? false
  }

  connect(): Connection<S> {
    if (!this.#connection?.alive) this.#connection = this.#start()
    return this.#connection
  }

  async run(turn: Turn<S>): Promise<void> {
    this.owner = turn.owner
    clearTimeout(this.#idle)
    await turn.run(() => this.connect())
    this.owner = null
    if (this.#idleMsMax !== null) this.#idle = setTimeout(() => void this.close(), this.#idleMsMax).unref()
  }

  async close(): Promise<void> {
    const connection = this.#connection
    this.#connection = null
    await connection?.close()
  }
}

const stopping = (): Fault => new Fault("not_ready", "Cannot run the work: the server is stopping")
