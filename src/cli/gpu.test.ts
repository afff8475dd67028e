import { expect, test } from "vitest"
import { missingFor } from "./gpu.ts"

test.each([
  ["linux", "x64", { driver: "580.95.05", absent: [] }, null],
  [
    "linux",
    "x64",
    { driver: "579.99", absent: [] },
    "the NVIDIA driver is 579.99; CUDA 13 needs 580 or newer",
  ],
  ["linux", "x64", { driver: null, absent: [] }, /no NVIDIA driver was found; install driver 580 or newer/],
  [
    "linux",
    "x64",
    { driver: "590.1", absent: ["libcurand.so.10"] },
    /of the CUDA 13 runtime libcurand\.so\.10 was not found/,
  ],
  [
    "linux",
    "arm64",
    { driver: "590.1", absent: [] },
    /CUDA is used on Linux on x64; on linux arm64 use a worker with a GPU/,
  ],
  ["darwin", "arm64", { driver: null, absent: ["libcurand.so.10"] }, /Metal is in the ordinary build/],
])("on %s %s with %o: %s", (platform, arch, facts, sentence) => {
  const missing = missingFor(facts, platform, arch)
  if (sentence instanceof RegExp) expect(missing).toMatch(sentence)
  else expect(missing).toBe(sentence)
})
