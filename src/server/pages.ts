/**
 * Serves the built console from memory: its page on every address a person can open, its files by their names. What decides in a browser is
 * among them.
 */
import { createHash } from "node:crypto"
import { readFile, readdir } from "node:fs/promises"
import { basename, extname, join, sep } from "node:path"
import { promisify } from "node:util"
import { gzip } from "node:zlib"

export interface PageRequest {
  readonly method: string
  /** Without the query. */
  readonly path: string
  readonly header: (name: string) => string | null
}

interface PageReply {
  readonly status: 200 | 304 | 404 | 503
  readonly headers: Record<string, string>
  readonly body: Uint8Array | string
}

export interface Pages {
  /** Null where the address belongs to the API, or does not exist. */
  find(request: PageRequest): Promise<PageReply | null>
}

interface StoredFile {
  readonly bytes: Uint8Array<ArrayBuffer>
  readonly type: string
  readonly etag: string
  /** Made when it is first asked for: a start need not wait for it. */
  zipped?: Promise<Uint8Array>
}

/** Nothing from elsewhere, nothing inline, no frames around us. */
const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "font-src 'self'",
  "connect-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join("; ")

const pageHeaders = {
  "content-security-policy": contentSecurityPolicy,
  "cross-origin-opener-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "permissions-policy": "camera=(), geolocation=(), microphone=()",
  "x-frame-options": "DENY",
}

/** A worker has the policy of its script; the network of a model is WebAssembly. */
const workerPolicy = contentSecurityPolicy.replace(
  "script-src 'self'",
  "script-src 'self' 'wasm-unsafe-eval'",
)
const workerPath = /^\/browser\/(?:worker\.js|.+\.mjs)$/

const types: Record<string, string> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".mjs": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".woff2": "font/woff2",
  ".json": "application/json; charset=utf-8",
}

/** The console's own addresses; the router in the page knows what is on them. */
const consolePath = /^\/(?:$|docs$|sign-in$|welcome$|new-organization$|join$|o\/)/
/** Named by their content, so they never change. */
const immutablePath = /^\/assets\//
/** Their names stay from version to version, and one does not fit another's. */
const samePath = /^\/browser\//
const zippedBytesMin = 1024
const dayS = 86_400
const gzipAsync = promisify(gzip)

/** The console, and the page of `openFleetPage`; neither is served by its name, and the second not at the console's port. */
type Entry = "/index.html" | "/fleet.html"
const isEntry = (path: string): boolean => path === "/index.html" || path === "/fleet.html"

interface PagesOptions {
  readonly entry?: Entry
  /** For browsers to decide with; it stays in memory once one has asked for it. */
  readonly modelFile?: string
}

/** A folder without a page is served as a page that says how to make one. */
export async function loadPages(
  directory: string,
  { entry = "/index.html", modelFile }: PagesOptions = {},
): Promise<Pages> {
  const files = await readFiles(directory)
  const page = files.get(entry)
  const modelPath = modelFile === undefined ? null : `/browser/${basename(modelFile)}`
  let model: Promise<StoredFile | undefined> | undefined
  return {
    async find({ method, path, header }) {
      if (method !== "GET" && method !== "HEAD") return null
      if (modelFile !== undefined && path === modelPath) model ??= readStored(modelFile)
      const file = path === modelPath ? await model : isEntry(path) ? undefined : files.get(path)
      if (file) {
        const found = await reply(file, header, { status: 200, cache: cacheFor(path) })
        if (workerPath.test(path)) found.headers["content-security-policy"] = workerPolicy
        return found
      }
      const person = (header("accept") ?? "").includes("text/html")
      if (path.startsWith("/v1/") || path.startsWith("/assets/") || !(consolePath.test(path) || person))
        return null
      if (!page) return notBuilt
      return await reply(page, header, { status: consolePath.test(path) ? 200 : 404, cache: "no-cache" })
    },
  }
}

async function readFiles(directory: string): Promise<Map<string, StoredFile>> {
  const names = await readdir(directory, { recursive: true, withFileTypes: true }).catch(() => [])
  const files = new Map<string, StoredFile>()
  for (const entry of names) {
    if (!entry.isFile()) continue
    const path = join(entry.parentPath, entry.name)
    const file = await readStored(path)
    if (file) files.set(path.slice(directory.length).replaceAll(sep, "/"), file)
  }
  return files
}

/** Undefined for one that is not there. */
async function readStored(path: string): Promise<StoredFile | undefined> {
  const bytes = await readFile(path).catch(() => null)
  const type = types[extname(path)] ?? "application/octet-stream"
  return bytes ? { bytes: new Uint8Array(bytes), type, etag: etagOf(bytes) } : undefined
}

export const etagOf = (bytes: Uint8Array): string =>
  `"${createHash("sha256").update(bytes).digest("base64url").slice(0, 22)}"`

function cacheFor(path: string): string {
  if (samePath.test(path)) return "no-cache"
  return immutablePath.test(path) ? `public, max-age=${365 * dayS}, immutable` : `public, max-age=${dayS}`
}

async function reply(
  file: StoredFile,
  header: PageRequest["header"],
  { status, cache }: { readonly status: 200 | 404; readonly cache: string },
): Promise<PageReply> {
  const headers: Record<string, string> = {
    ...pageHeaders,
    "content-type": file.type,
    "cache-control": cache,
    etag: file.etag,
    vary: "accept-encoding",
  }
  if (header("if-none-match") === file.etag) return { status: 304, headers, body: "" }
  const accepts = /\bgzip\b/.test(header("accept-encoding") ?? "")
  // Fonts and binaries are compressed already, or do not get much smaller.
  const zips =
    accepts && !/^(?:font|application\/octet)/.test(file.type) && file.bytes.length >= zippedBytesMin
  if (!zips) return { status, headers, body: file.bytes }
  file.zipped ??= gzipAsync(file.bytes).then((zipped) => new Uint8Array(zipped))
  return { status, headers: { ...headers, "content-encoding": "gzip" }, body: await file.zipped }
}

const notBuilt: PageReply = {
  status: 503,
  headers: { ...pageHeaders, "content-type": "text/html; charset=utf-8", "cache-control": "no-store" },
  body: [
    "<!doctype html><html lang=en><meta charset=utf-8><title>Umpire</title>",
    "<h1>The console is not built</h1>",
    "<p>Run <code>npm run build:console</code> in the folder of Umpire and start it again. ",
    "The API works without it: see <a href=/openapi.json>/openapi.json</a>.</p></html>",
  ].join(""),
}
