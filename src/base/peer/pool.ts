/** A few peers for short work of many owners: started when needed, a bounded queue, one call for each owner at most. */
import { Fault } from "../../contract/errors.ts"
import { FairTurns } from "../turns.ts"
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
  const turns = new FairTurns(1)
  const waiting: Turn<S>[] = []
  let spare: Connection<S> | null = null
  let isClosed = false
  const connect = (): Connection<S> => {
    const start = (): Connection<S> => new Connection<S>(settings.spawn(), { ...watchDefaults, ...settings })
    const taken = spare?.alive ? spare : start()
    spare = hasSpare ? start() : null
    return taken
  }
  const seats = Array.from({ length: peersMax }, () => new Seat<S>(connect, idleMsMax))

  const next = (): void => {
    // One without a running peer takes a moment to get another: it comes last.
    const free = seats.filter(({ isFree }) => isFree)
    for (const seat of free.toSorted((a, b) => Number(b.isWarm) - Number(a.isWarm))) {
      const first = turns.next(waiting.map(({ owner }) => owner))
      const at = waiting.findIndex(({ owner }) => owner === first)
      const [turn] = at < 0 ? [] : waiting.splice(at, 1)
      if (!turn) return
      const endTurn = turns.begin(turn.owner)
      void seat.run(turn).then(() => {
        endTurn()
        next()
      })
    }
  }

  return {
    async run(owner, method, input, signal) {
      signal?.throwIfAborted()
      if (isClosed) throw stopping()
      const own = waiting.filter((turn) => turn.owner === owner)
      if (waiting.length >= waitingMax || own.length >= Math.ceil(waitingMax * ownerShare))
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
      waiting.push(turn)
      next()
      return await abortable(promise, signal, () => {
        const at = waiting.indexOf(turn)
        if (at >= 0) waiting.splice(at, 1)
      })
    },
    warm: () => {
      if (!isClosed) for (const seat of seats) seat.connect()
    },
    async close() {
      isClosed = true
      for (const turn of waiting.splice(0)) turn.refuse(stopping())
      await Promise.all([spare?.close(), ...seats.map(async (seat) => await seat.close())])
    },
  }
}

/** A place for one peer, which comes and goes. */
class Seat<S extends Service<S>> {
  isFree = true
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
    this.isFree = false
    clearTimeout(this.#idle)
    await turn.run(() => this.connect())
    this.isFree = true
    if (this.#idleMsMax !== null) this.#idle = setTimeout(() => void this.close(), this.#idleMsMax).unref()
  }

  async close(): Promise<void> {
    const connection = this.#connection
    this.#connection = null
    await connection?.close()
  }
}

const stopping = (): Fault => new Fault("not_ready", "Cannot run the work: the server is stopping")
