/**
 * The threads that take large work off the event loop: one pool for all of it, with a bounded queue and turns between
 * organizations. A task is a function that a module exports; a thread imports the module when it first needs it.
 *
 *     const decodeTask = task(import.meta.url, decodeBody)
 *     const decoded = await threads.run(organizationId, decodeTask, job, signal)
 *
 * A process has one pool, as it has one machine: two would not be fair to each other. So it is no argument.
 */
import { availableParallelism } from "node:os"
import type { ToPeer } from "./peer.ts"
import { type Pool, createPool } from "./pool.ts"
import { threadChannel } from "./supervisor.ts"

/**
 * The one size from which on bytes are read apart. Millions of tiny values take some 75 ms for each MiB, during which no other
 * request is answered: at this size that is 5 ms, and the way to a thread and back costs less than a part of one.
 */
export const threadBytesMin = 64 * 1024

/**
 * What crosses to a thread and back is copied by the structured clone algorithm, but for the buffers that a task takes over, and an output
 * that is bytes.
 */
export interface Task<Input, Output> {
  readonly module: string
  /** Of the function that the module exports. */
  readonly name: string
  /** Buffers of an input that are empty once it was sent: large ones are not copied. The thread frees them after the run. */
  readonly takes?: ((input: Input) => readonly ArrayBuffer[]) | undefined
  /** Its types; never set. */
  readonly types?: (input: Input) => Output
}

/** What a thread serves. */
export interface WorkService {
  work: {
    input: {
      readonly module: string
      readonly name: string
      readonly input: unknown
      readonly taken: readonly ArrayBuffer[]
    }
    output: unknown
  }
}

interface Threads {
  /** `overloaded` when too many wait. The signal ends the wait; work that has begun goes on to its end. */
  run<Input, Output>(
    owner: string,
    task: Task<Input, Output>,
    input: Input,
    signal?: AbortSignal,
  ): Promise<Output>
  /** Ends the threads; work that comes later starts new ones. */
  close(): Promise<void>
}

/** `run` must be exported by the module under its own name. */
export function task<Input, Output>(
  module: string,
  run: (input: Input) => Output | Promise<Output>,
  takes?: (input: Input) => readonly ArrayBuffer[],
): Task<Input, Output> {
  return { module, name: run.name, takes }
}

/** One organization has one thread at most: with two or more, there is another for everyone else. */
const threadsMax = Math.max(2, Math.min(4, availableParallelism()))
const waitingMax = 1024
/** A thread that works on one task for longer is ended. */
const workMsMax = 60_000

let pool: Pool<WorkService> | null = null

const openPool = (): Pool<WorkService> =>
  createPool({
    spawn: () => threadChannel(new URL("./work-thread.ts", import.meta.url), {}, takenOf),
    peersMax: threadsMax,
    waitingMax,
    silenceMsMax: workMsMax,
  })

/** Every call of this pool is one of `run`. */
const takenOf = (message: ToPeer): readonly ArrayBuffer[] =>
  message.kind === "call" ? (message.input as WorkService["work"]["input"]).taken : []

export const threads: Threads = {
  async run<Input, Output>(
    owner: string,
    { module, name, takes }: Task<Input, Output>,
    input: Input,
    signal?: AbortSignal,
  ) {
    pool ??= openPool()
    // The function that the task names made it.
    const taken = takes?.(input) ?? []
    return (await pool.run(owner, "work", { module, name, input, taken }, signal)) as Output
  },
  async close() {
    const closing = pool
    pool = null
    await closing?.close()
  },
}
