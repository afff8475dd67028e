/** A thread of the pool: runs functions of modules by name. */
import { getPriority, setPriority } from "node:os"
import { freeBuffer, ownBuffers } from "../own-buffer.ts"
import { servePeer } from "./serve.ts"
import type { WorkService } from "./threads.ts"

/**
 * Gets a third of the time of what competes for its processor: short decisions go first, and large work still ends in time on a
 * machine that is never idle. At 10 it is a tenth, and work of two seconds was ended by its deadline beside six busy processes.
 */
const niceness = 5

// Elsewhere than on Linux this would be the priority of the whole process.
if (process.platform === "linux") setPriority(Math.max(getPriority(), niceness))

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
