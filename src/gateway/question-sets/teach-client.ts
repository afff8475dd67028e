/** Fits what a question is taught in a thread of its own: with progress, and stopped when its job is cancelled. */
import { Connection } from "../../base/peer/connection.ts"
import { threadChannel } from "../../base/peer/supervisor.ts"
import type { TaughtArtefact } from "../../scoring/teach/artefact.ts"
import type { TaughtQuestion, TaughtRow } from "../../scoring/teach/question.ts"

export interface TeachInput {
  readonly question: TaughtQuestion
  readonly rows: readonly TaughtRow[]
  readonly modelVersion: string
}

/** Items are the share that is done. */
export interface TeachService {
  teach: { input: TeachInput; item: number; output: TaughtArtefact }
}

const startMsMax = 60_000

export async function teachInThread(
  input: TeachInput,
  signal: AbortSignal,
  onProgress: (done: number) => void,
): Promise<TaughtArtefact> {
  const connection = new Connection<TeachService>(
    threadChannel(new URL("./teach-thread.ts", import.meta.url)),
    { startMsMax },
  )
  try {
    const stream = await connection.stream("teach", input)
    for (;;) {
      const step = await stream.next(undefined, signal)
      if (step.done) return step.value
      onProgress(step.value)
    }
  } finally {
    await connection.close()
  }
}
