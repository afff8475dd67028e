/** Runs the test files that take longest first, so that no worker is left with one when the others are done. */
import { BaseSequencer, type TestSpecification } from "vitest/node"

/**
 * Those of half a minute and more, from the longest on. The others follow in Vitest's order, large files first. The first of
 * the console installs the browser where there is none, and the next ones must not wait for it.
 */
const longest = [
  "console-running",
  "chaos",
  "package",
  "abuse",
  "overshoot",
  "settings-server",
  "console-asking",
  "console-sets",
  "platform-access",
  "inference-workers",
  "local-engine",
  "analytics-equality",
  "batch-gateways",
  "console-pages",
  "start",
  "analytics-http",
  "virtual-models",
  "question-sets-model-change",
  "question-sets-teaching",
  "label",
  "encoder-engine",
  "platform-cli",
  "lease-book",
  "scoring",
  "cascade-teaching",
  "classification-http",
  "question-sets-next",
  "question-sets-cli",
  "upgrade",
  "inference-structured",
  "backup",
  "outage",
  "inference-models",
  "exporter",
  "analytics-upkeep",
  "inference-parameters",
  "connected-models",
  "batches",
  "inference-clients",
  "inference-stored",
  "encoder-equality",
  "sql-decide",
  "platform-model-access",
].map((name) => `/${name}.test.ts`)

export default class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    // The sequencer's method, not an array's.
    // oxlint-disable-next-line unicorn/no-array-sort
    const others = await super.sort(files)
    return others.toSorted((a, b) => rank(a) - rank(b))
  }
}

function rank({ moduleId }: TestSpecification): number {
  const at = longest.findIndex((path) => moduleId.endsWith(path))
  return at === -1 ? longest.length : at
}
