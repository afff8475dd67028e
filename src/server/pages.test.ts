import { mkdtempSync, mkdirSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { basename, join } from "node:path"
import { gunzipSync } from "node:zlib"
import { expect, test } from "vitest"
import { type Pages, loadPages } from "./pages.ts"

const script = `export const answer = ${JSON.stringify("42".repeat(1000))}`

function built(): string {
  const directory = mkdtempSync(join(tmpdir(), "umpire-pages-"))
  mkdirSync(join(directory, "assets"))
  writeFileSync(join(directory, "index.html"), "<!doctype html><title>Umpire</title>")
  writeFileSync(join(directory, "assets", "main-abc.js"), script)
  writeFileSync(join(directory, "assets", "letters-abc.woff2"), script)
  writeFileSync(join(directory, "theme.js"), "1")
  return directory
}

const get = async (pages: Pages, path: string, headers: Record<string, string> = {}, method = "GET") =>
  await pages.find({ method, path, header: (name) => headers[name] ?? null })

const html = { accept: "text/html,*/*;q=0.8" }

test.each([
  ["/", html, 200],
  ["/docs", html, 200],
  ["/sign-in", {}, 200],
  ["/welcome", {}, 200],
  ["/new-organization", {}, 200],
  ["/o/org_1/playground", html, 200],
  ["/no/such/page", html, 404],
  ["/no/such/page", { accept: "application/json" }, null],
  ["/v1/nothing", html, null],
  ["/assets/gone.js", html, null],
  ["/../package.json", { accept: "*/*" }, null],
])("%s with %j answers %s", async (path, headers, status) => {
  const reply = await get(await loadPages(built()), path, headers)
  expect(reply?.status ?? null).toBe(status)
})

test("a write is never answered by a page", async () => {
  expect(await get(await loadPages(built()), "/", html, "POST")).toBeNull()
})

test("the page allows scripts and styles from this server only, and is asked for again each time", async () => {
  const reply = await get(await loadPages(built()), "/", html)
  const policy = reply?.headers["content-security-policy"] ?? ""
  expect(policy).toContain("default-src 'none'")
  expect(policy).toContain("script-src 'self'")
  expect(policy).toContain("font-src 'self'")
  expect(policy).not.toContain("unsafe")
  expect(policy).toContain("frame-ancestors 'none'")
  expect(reply?.headers["cache-control"]).toBe("no-cache")
})

test("files named by their content are kept for good, sent zipped where that is understood", async () => {
  const pages = await loadPages(built())
  const plain = await get(pages, "/assets/main-abc.js")
  expect(plain?.headers["cache-control"]).toContain("immutable")
  expect(Buffer.from(plain?.body ?? "").toString()).toBe(script)
  const zipped = await get(pages, "/assets/main-abc.js", { "accept-encoding": "gzip, br" })
  expect(zipped?.headers["content-encoding"]).toBe("gzip")
  expect(gunzipSync(zipped?.body as Uint8Array).toString()).toBe(script)
  const font = await get(pages, "/assets/letters-abc.woff2", { "accept-encoding": "gzip, br" })
  expect(font?.headers).toMatchObject({ "content-type": "font/woff2" })
  expect(font?.headers["content-encoding"]).toBeUndefined()
  expect((await get(pages, "/theme.js"))?.headers["cache-control"]).not.toContain("immutable")
})

test("what decides in a browser may compile WebAssembly in its worker alone, with the model beside it", async () => {
  const directory = built()
  mkdirSync(join(directory, "browser"))
  for (const name of ["umpire.js", "worker.js", "runtime.mjs"])
    writeFileSync(join(directory, "browser", name), script)
  const modelFile = join(directory, "..", `${basename(directory)}.onnx`)
  writeFileSync(modelFile, script)
  const pages = await loadPages(directory, { modelFile })
  const policyOf = async (name: string): Promise<string> =>
    (await get(pages, `/browser/${name}`))?.headers["content-security-policy"] ?? ""
  expect(await policyOf("umpire.js")).not.toContain("wasm-unsafe-eval")
  expect(await policyOf("worker.js")).toContain("script-src 'self' 'wasm-unsafe-eval'")
  expect(await policyOf("runtime.mjs")).toContain("script-src 'self' 'wasm-unsafe-eval'")
  const model = await get(pages, `/browser/${basename(modelFile)}`, { "accept-encoding": "gzip" })
  expect(Buffer.from(model?.body ?? "").toString()).toBe(script)
  expect(model?.headers["cache-control"]).toBe("no-cache")
  const gone = await loadPages(directory, { modelFile: join(directory, "gone.onnx") })
  expect(await get(gone, "/browser/gone.onnx")).toBeNull()
})

test("what the browser has is not sent again", async () => {
  const pages = await loadPages(built())
  const first = await get(pages, "/", html)
  const again = await get(pages, "/", { ...html, "if-none-match": first?.headers["etag"] ?? "" })
  expect([again?.status, again?.body]).toEqual([304, ""])
})

test("without a built console, a person is told how to build it", async () => {
  const reply = await get(await loadPages(join(tmpdir(), "umpire-no-such-folder")), "/", html)
  expect(reply?.status).toBe(503)
  expect(reply?.body).toContain("npm run build:console")
})
