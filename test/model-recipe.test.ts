/** The model's recipe is Python; its own tests run here as far as this machine has what they need. */
import { spawnSync } from "node:child_process"
import { join } from "node:path"
import { expect, test } from "vitest"

const folder = join(import.meta.dirname, "..", "model")
const python = spawnSync("python3", ["-c", "import sys; sys.exit(sys.version_info < (3, 11))"])

test.skipIf(python.status !== 0)(
  "the tests of the model's recipe pass (what needs PyTorch is left out without it)",
  () => {
    const run = spawnSync("python3", ["-B", "-m", "unittest", "discover", "-s", "recipe", "-t", "."], {
      cwd: folder,
      encoding: "utf8",
    })
    expect(run.stderr).toMatch(/^Ran [1-9]\d+ tests/m)
    expect(run.stderr).toMatch(/^OK/m)
    expect(run.status).toBe(0)
  },
)
