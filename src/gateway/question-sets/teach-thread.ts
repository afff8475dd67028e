/** The thread that fits what a question set is taught, so that others are answered meanwhile. */
import { servePeer } from "../../base/peer/connection.ts"
import { lowerThreadPriority } from "../../base/thread-priority.ts"
import { Fault } from "../../contract/errors.ts"
import type { TaughtArtefact } from "../../scoring/teach/artefact.ts"
import { TeachRefusal } from "../../scoring/teach/question.ts"
import { teach } from "../../scoring/teach/teach.ts"
import type { TeachInput, TeachService } from "./teach-client.ts"

lowerThreadPriority()
servePeer<TeachService>({ teach: run })

async function* run(
  input: TeachInput,
  signal: AbortSignal,
): AsyncGenerator<number, TaughtArtefact, undefined> {
  const { question, rows, modelVersion } = input
  const state = { progress: 0, isEnded: false }
  let wake = Promise.withResolvers<void>()
  const work = teach(question, rows, {
    modelVersion,
    signal,
    onProgress: (done) => {
      state.progress = done
      wake.resolve()
    },
  }).finally(() => {
    state.isEnded = true
    wake.resolve()
  })
  // It is awaited below; until then its failure is not unhandled.
  work.catch(() => undefined)
  while (!state.isEnded) {
    yield state.progress
    await wake.promise
    wake = Promise.withResolvers<void>()
  }
  try {
    return await work
  } catch (error) {
    throw error instanceof TeachRefusal ? new Fault("conflict", error.message) : error
  }
}
