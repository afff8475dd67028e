/** A thread of the pool: runs functions of modules by name. */
import { constants, getPriority, setPriority } from "node:os"
import { freeBuffer, ownBuffers } from "../own-buffer.ts"
import { servePeer } from "./serve.ts"
import type { WorkService } from "./threads.ts"

// Elsewhere than on Linux this would be the priority of the whole process.
if (process.platform === "linux")
  setPriority(Math.max(getPriority(), constants.priority.PRIORITY_BELOW_NORMAL))

servePeer<WorkService>(
  {
    work: async ({ module, name, input, taken }) => {
      // As `task` says; what a module exports under another name is a mistake of its author.
      const exported = (await import(module)) as Record<string, (input: unknown) => unknown>
      const run = exported[name]
      if (!run) throw new TypeError(`Cannot run ${name}: ${module} exports nothing of this name`)
      try {
        return await run(input)
      } finally {
        for (const buffer of taken) freeBuffer(buffer)
      }
    },
  },
  { given: (output) => (output instanceof Uint8Array ? ownBuffers(output) : []) },
)
