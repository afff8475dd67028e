/** The process that scores with one GGUF model. */
import { promptText } from "../branch.ts"
import { serveScorer } from "../engine-service.ts"
import { Scorer, type ScorerOptions } from "./scorer.ts"

// The engine that starts this process gives it its options.
serveScorer(async (options) => {
  const scorer = await Scorer.open(options as ScorerOptions)
  return {
    facts: scorer.facts,
    score: async (work, call) =>
      await scorer.score({ ...work, branches: work.branches.map(promptText) }, call),
    stats: () => scorer.stats(),
    runningMs: () => scorer.decodingMs(),
  }
})
