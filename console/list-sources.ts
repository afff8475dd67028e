/** Says which files of the repository a build was made from, so that a start knows whether to build again. */
import { relative } from "node:path"
import type { Plugin } from "vite"

export function listSources(repository: string): Plugin {
  return {
    name: "list-sources",
    generateBundle() {
      const files = [...this.getModuleIds()]
        .map((id) => id.split("?")[0] ?? "")
        .filter((id) => id.startsWith(`${repository}/`) && !id.includes("/node_modules/"))
        .map((id) => relative(repository, id))
      const source = [...new Set(files)].toSorted().join("\n")
      this.emitFile({ type: "asset", fileName: ".sources", source })
    },
  }
}
