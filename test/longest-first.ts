/** Runs the test files that take longest first, so that no worker is left with one when the others are done. */
import { BaseSequencer, type TestSpecification } from "vitest/node"

/**
 * Those of half a minute and more, from the longest on, and small files that take long. The others follow in Vitest's order,
 * large files first. The first of the console installs the browser where there is none, and the next ones must not wait for it.
 */
const longest = [
  "console-running",
  "chaos",
  "abuse",
  "package",
  "console-asking",
  "console-pages",
  "console-sets",
  "start",
  "encoder-engine",
  "backup",
  "question-sets-teaching",
  "request-log",
  "platform-access",
  "classification-http",
  "key-budgets",
  "inference-clients",
  "label",
  "inference-models",
  "analytics-equality",
  "upgrade",
  "content-kill",
  "inference-workers",
  "inference-parameters",
  "eval",
  "console-session",
  "encoder-equality",
  "kill",
  "overshoot",
  "platform-openapi",
  "openapi-contract",
  "batch-gateways",
  "engine-load",
  "analytics-kill",
  "outage",
].map((name) => `/test/${name}.test.ts`)

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
