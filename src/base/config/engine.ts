/** How models run on this machine. */
import { z } from "zod"
import { whole } from "./values.ts"

export const EngineConfig = z.strictObject({
  threads: whole(1, 1024)
    .optional()
    .describe(
      "Threads per model; without it, one per core for decisions, and one less for chat and embeddings.",
    ),
  kv_memory_mib: whole(16, 1_048_576)
    .default(512)
    .describe("Memory per GGUF model for the keys and values of running requests."),
  cache_memory_mib: whole(0, 1_048_576)
    .default(512)
    .describe("Memory per model for caching evaluated evidence; 0 disables the cache."),
  queue_max: whole(1, 1_000_000).default(4096).describe("Most requests waiting for one model."),
  idle_unload_s: whole(1, 31_536_000)
    .optional()
    .describe(
      "Models of this machine that were idle for so long leave the memory until they are used again; without it they stay.",
    ),
  memory_budget_mib: whole(64, 16_777_216)
    .optional()
    .describe(
      "Memory that the models of this machine may take together; the least recently used leave for others. Without it there is no limit.",
    ),
  gpu: z
    .enum(["off", "auto"])
    .default("auto")
    .describe("Use a GPU build of llama.cpp where one is installed."),
  library_dir: z
    .string()
    .min(1)
    .optional()
    .describe("Folder with the build of llama.cpp that scores, instead of the installed one; see gpu.md."),
})
