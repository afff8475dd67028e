/** The process that fits what a question is taught, so that others are answered meanwhile. */
import { constants, getPriority, setPriority } from "node:os"
import { servePeer } from "../../base/peer/serve.ts"
import { Fault } from "../../contract/errors.ts"
import { type CascadeRequest, expectCascade, fitThresholds } from "../../scoring/teach/cascade.ts"
import { type UnlabelledRow, labelNext } from "../../scoring/teach/next.ts"
import { TeachRefusal } from "../../scoring/teach/question.ts"
import { type RuledRow, weighRules } from "../../scoring/teach/rules.ts"
import { type StagedTeaching, pacer, teachStages } from "../../scoring/teach/teach.ts"
import type { TeachInput, TeachService } from "./teach-client.ts"

// Live requests go first where there are fewer cores than work.
const { PRIORITY_LOW } = constants.priority
if (getPriority() < PRIORITY_LOW) setPriority(PRIORITY_LOW)
const rows: RuledRow[] = []
const requests: CascadeRequest[] = []
const candidates: UnlabelledRow[] = []
servePeer<TeachService>({
  addRows: (added) => {
    rows.push(...added)
    return null
  },
  teach: run,
  addRequests: (added) => {
    requests.push(...added)
    return null
  },
  addCandidates: (added) => {
    candidates.push(...added)
    return null
  },
  chooseNext: async ({ question, count }, signal) =>
    await labelNext({ question, labelled: rows, candidates }, count, pacer(signal)),
  fitCascade: async (given, signal) => {
    const problem = { ...given, requests }
    const thresholds = await fitThresholds(problem, pacer(signal))
    return { thresholds, expected: expectCascade(problem, thresholds) }
  },
})

async function* run(
  { question, modelVersion, rules }: TeachInput,
  signal: AbortSignal,
): AsyncGenerator<number, StagedTeaching, undefined> {
  const state = { progress: 0, isEnded: false }
  let wake = Promise.withResolvers<void>()
  const teach = async (): Promise<StagedTeaching> => {
    const weighed = rules.length > 0 ? await weighRules(question.kind, rules, rows, pacer(signal)) : null
    const taught = await teachStages(question, weighed?.rows ?? rows, {
      modelVersion,
      signal,
      onProgress: (done) => {
        state.progress = done
        wake.resolve()
      },
    })
    return weighed ? { ...taught, artefact: { ...taught.artefact, rules: weighed.rules } } : taught
  }
  const work = teach().finally(() => {
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
