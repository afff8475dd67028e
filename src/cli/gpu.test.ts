import { expect, test } from "vitest"
import { missingFor } from "./gpu.ts"

test.each([
  ["linux", "x64", { driver: "580.95.05", runtime: true }, null],
  [
    "linux",
    "x64",
    { driver: "579.99", runtime: true },
    "the NVIDIA driver is 579.99; CUDA 13 needs 580 or newer",
  ],
  [
    "linux",
    "x64",
    { driver: null, runtime: true },
    /no NVIDIA driver was found; install driver 580 or newer/,
  ],
  ["linux", "x64", { driver: "590.1", runtime: false }, /CUDA 13 runtime was not found \(libcudart\.so\.13/],
  [
    "linux",
    "arm64",
    { driver: "590.1", runtime: true },
    /for Linux on x64; on linux arm64 use a worker with a GPU/,
  ],
  ["darwin", "arm64", { driver: null, runtime: false }, /Metal is in the ordinary build/],
])("on %s %s with %o: %s", (platform, arch, facts, sentence) => {
  const missing = missingFor(facts, platform, arch)
  if (sentence instanceof RegExp) expect(missing).toMatch(sentence)
  else expect(missing).toBe(sentence)
})
