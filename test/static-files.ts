/** A plain server of files, as any is that a page may come from. */
import { createReadStream, statSync } from "node:fs"
import { createServer } from "node:http"
import { extname, join } from "node:path"

const types: Record<string, string> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript",
  ".mjs": "text/javascript",
}
const isolation = {
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-embedder-policy": "require-corp",
}

export interface StaticFiles {
  readonly url: string
  /** What was sent, by path: how many bytes of bodies. */
  readonly sent: Map<string, number>
  close(): Promise<void>
}

/** Folders and files by the path that they are served at, the longest first; below /isolated/ pages are cross-origin isolated. */
export async function serveFiles(places: Readonly<Record<string, string>>): Promise<StaticFiles> {
  const sent = new Map<string, number>()
  const server = createServer(({ url = "/" }, response) => {
    const { pathname } = new URL(url, "http://localhost")
    const path = pathname.replace(/^\/isolated/, "")
    const place = Object.keys(places).find((prefix) => path.startsWith(prefix)) ?? "/"
    const target = places[place] ?? ""
    const file = place.endsWith("/") ? join(target, path.slice(place.length)) : target
    const size = statSync(file, { throwIfNoEntry: false })?.isFile() ? statSync(file).size : null
    if (path.includes("..") || size === null) return void response.writeHead(404).end()
    sent.set(path, (sent.get(path) ?? 0) + size)
    const type = types[extname(file)] ?? "application/octet-stream"
    const headers = { "content-type": type, "content-length": size, "cache-control": "no-cache" }
    response.writeHead(200, { ...headers, ...(pathname === path ? {} : isolation) })
    createReadStream(file).pipe(response)
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const address = server.address()
  const port = typeof address === "object" ? address?.port : undefined
  return {
    url: `http://127.0.0.1:${port}`,
    sent,
    close: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
