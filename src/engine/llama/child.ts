/** The process that scores with one GGUF model. */
import { promptText } from "../branch.ts"
import { serveScorer } from "../engine-service.ts"
import { Scorer, type ScorerOptions } from "./scorer.ts"

// The engine that starts this process gives it its options.
serveScorer(async (options) => {
  const scorer = await Scorer.open(options as ScorerOptions)
  return {
    facts: scorer.facts,
    prepare: async (work, signal) =>
      await scorer.prepare({ ...work, branches: work.branches.map(promptText) }, signal),
    run: async (job, signal) => await scorer.run(job, signal),
    stats: () => scorer.stats(),
    runningMs: () => scorer.decodingMs(),
  }
})
