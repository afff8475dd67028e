import { expect, test } from "vitest"
import type { LlamaBackend } from "./library.ts"
import { candidatePackages, checkAbi, openLlamaLibrary } from "./library.ts"

test.each<[LlamaBackend, string, string, string[]]>([
  ["auto", "linux", "x64", ["linux-x64-cuda", "linux-x64-vulkan", "linux-x64"]],
  ["cpu", "linux", "x64", ["linux-x64"]],
  ["cuda", "linux", "x64", ["linux-x64-cuda"]],
  ["vulkan", "win32", "x64", ["win-x64-vulkan"]],
  ["cpu", "linux", "arm", ["linux-armv7l"]],
  ["auto", "darwin", "arm64", ["mac-arm64-metal"]],
  ["cpu", "darwin", "arm64", ["mac-arm64-metal"]],
  ["auto", "darwin", "x64", ["mac-x64"]],
  ["metal", "linux", "x64", []],
  ["auto", "aix", "ppc64", []],
])("%s on %s-%s looks for %j", (backend, platform, arch, expected) => {
  expect(candidatePackages(backend, platform, arch)).toEqual(expected)
})

test("the installed library has the version and the struct layouts that the binding was written for", () => {
  expect(() => checkAbi(openLlamaLibrary())).not.toThrow()
})

test.each([
  ["another version", { version: "0.6.0" }, "found version 0.6.0"],
  ["another default in the context's struct", { n_ubatch: 77 }, "llama_context_params.n_ubatch = 77"],
  [
    "another default in the model's struct",
    { use_extra_bufts: false },
    "llama_model_params.use_extra_bufts = false",
  ],
])("a library with %s is refused", (_, changed, sentence) => {
  const library = openLlamaLibrary()
  const altered = {
    packageName: library.packageName,
    version: library.version,
    contextDefaults: () => ({ ...library.contextDefaults(), ...changed }),
    modelDefaults: () => ({ ...library.modelDefaults(), ...changed }),
    ...("version" in changed ? changed : {}),
  }
  expect(() => checkAbi(altered)).toThrow(sentence)
})
