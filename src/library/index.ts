/** `import { load } from "umpire"`: decisions inside a program, in a thread of their own, without a server, a database or a network. */
import { readFile } from "node:fs/promises"
import { threadChannel } from "../base/peer/supervisor.ts"
import type { NodeModel } from "./thread.ts"
import type { LoadOptions, Umpire } from "./types.ts"
import { UmpireThread, umpireOn } from "./umpire.ts"

export type * from "./types.ts"
export { UmpireError } from "./error.ts"

/** Loads a model. The thread does not keep the process alive by itself; `close` frees its memory. */
export async function load({ model = "umpire-decide", threads }: LoadOptions = {}): Promise<Umpire> {
  const thread = new UmpireThread<NodeModel>(threadChannel(new URL("./thread.ts", import.meta.url)))
  const umpire = await umpireOn(thread, { model, ...(threads === undefined ? {} : { threads }) })
  return {
    ...umpire,
    embed: async ({ signal, ...work }) => await thread.call("embed", work, signal),
    set: async (file) => await umpire.set(typeof file === "string" ? await readFile(file) : file),
  }
}
