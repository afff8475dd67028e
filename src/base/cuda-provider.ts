/** ONNX Runtime's CUDA provider: no package of npm has it, so it is put beside the runtime's own library, which looks for it there. */
import { existsSync } from "node:fs"
import { createRequire } from "node:module"
import { dirname, join } from "node:path"

export const cudaProviderFiles = [
  "libonnxruntime_providers_shared.so",
  "libonnxruntime_providers_cuda.so",
] as const

export function cudaProviderFolder(): string {
  const entry = createRequire(import.meta.url).resolve("onnxruntime-node")
  return join(dirname(entry), "..", "bin", "napi-v6", process.platform, process.arch)
}

export const hasCudaProvider = (): boolean =>
  cudaProviderFiles.every((name) => existsSync(join(cudaProviderFolder(), name)))
