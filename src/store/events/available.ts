/** Which embedded engines this machine can load: their packages are optional, and not published for every platform. */
import { createRequire } from "node:module"

type EmbeddedEngine = "chdb" | "duckdb"

const require = createRequire(import.meta.url)

/** In order of preference: chDB speaks the same SQL as a ClickHouse server. */
export function embeddedEngines(): EmbeddedEngine[] {
  const { platform, arch } = process
  const libc = platform === "linux" ? "-gnu" : ""
  const engines: EmbeddedEngine[] = []
  if (isInstalled("chdb", `@chdb/lib-${platform}-${arch}${libc}`)) engines.push("chdb")
  if (isInstalled("@duckdb/node-api", `@duckdb/node-bindings-${platform}-${arch}`)) engines.push("duckdb")
  return engines
}

/** The library is found from the package that loads it. */
function isInstalled(name: string, library: string): boolean {
  try {
    const loader = createRequire(require.resolve(name))
    loader.resolve(`${library}/package.json`)
    return true
  } catch {
    return false
  }
}
