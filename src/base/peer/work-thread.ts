/** A thread of the pool: runs functions of modules by name. */
import { servePeer } from "./serve.ts"
import type { WorkService } from "./threads.ts"

servePeer<WorkService>({
  work: async ({ module, name, input }) => {
    // As `task` says; what a module exports under another name is a mistake of its author.
    const exported = (await import(module)) as Record<string, (input: unknown) => unknown>
    const run = exported[name]
    if (!run) throw new TypeError(`Cannot run ${name}: ${module} exports nothing of this name`)
    return await run(input)
  },
})
