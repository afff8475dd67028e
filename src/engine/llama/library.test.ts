import { expect, test } from "vitest"
import type { LlamaBackend } from "./library.ts"
import { LLAMA_FILE, candidatePackages, checkAbi, openLlamaLibrary } from "./library.ts"

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

test.each([
  ["libllama.v0.5.0.so", true],
  ["libllama.cuda.v0.5.0.so", true],
  ["libllama.metal.v0.5.0.dylib", true],
  ["llama.vulkan.v0.5.0.dll", true],
  ["libllama.so", true],
  ["libllama-common.so", false],
  ["llama-addon.node", false],
  ["libllama.so.0.5.0", false],
])("%s is taken for the library: %s", (file, expected) => {
  expect(LLAMA_FILE.test(file)).toBe(expected)
})

test("a given folder without the library is refused by name, and no package is taken instead", () => {
  expect(() => openLlamaLibrary("auto", import.meta.dirname)).toThrow(
    `Cannot open llama.cpp from ${import.meta.dirname}: no libllama there`,
  )
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
