/** Ends the run with one plain line that any tool can read: "N passed, N failed[, N skipped]". */
import type { Reporter, TestModule } from "vitest/node"

export default class SummaryReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly unknown[]): void {
    const count = { passed: 0, failed: unhandledErrors.length, skipped: 0 }
    for (const module of modules) {
      // A file that cannot be loaded has no tests to count, and must not look like a success.
      if (module.state() === "failed" && module.children.size === 0) count.failed++
      for (const test of module.children.allTests()) {
        const { state } = test.result()
        if (state === "passed" || state === "failed") count[state]++
        else count.skipped++
      }
    }
    const skipped = count.skipped > 0 ? `, ${count.skipped} skipped` : ""
    process.on("exit", () =>
      process.stdout.write(`\n${count.passed} passed, ${count.failed} failed${skipped}\n`),
    )
  }
}
