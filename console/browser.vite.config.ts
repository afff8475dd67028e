/** Builds `umpire/browser` into console/dist/browser: a folder for any server of files, which the console loads too. */
import { copyFileSync, readFileSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { dirname, join } from "node:path"
import { gzipSync } from "node:zlib"
import { type Plugin, defineConfig } from "vite"
import { listSources } from "./list-sources.ts"

const root = dirname(import.meta.dirname)
const library = join(root, "src", "library")
const outDir = join(import.meta.dirname, "dist", "browser")
const runtime = dirname(createRequire(import.meta.url).resolve("onnxruntime-web"))
const best = 9

/** ONNX Runtime's script as it is, and its binary, compressed. */
const copyRuntime: Plugin = {
  name: "copy-runtime",
  writeBundle() {
    const name = "ort-wasm-simd-threaded"
    copyFileSync(join(runtime, `${name}.mjs`), join(outDir, `${name}.mjs`))
    const binary = gzipSync(readFileSync(join(runtime, `${name}.wasm`)), { level: best })
    writeFileSync(join(outDir, `${name}.wasm.gz`), binary)
  },
}

export default defineConfig({
  root: import.meta.dirname,
  publicDir: false,
  plugins: [listSources(root), copyRuntime],
  // The variant whose own script is loaded from where it lies: its threads start with it.
  resolve: { alias: { "onnxruntime-web/wasm": join(runtime, "ort.wasm.min.mjs") } },
  build: {
    outDir,
    emptyOutDir: true,
    target: "es2023",
    modulePreload: false,
    reportCompressedSize: false,
    rolldownOptions: {
      input: { umpire: join(library, "browser.ts"), worker: join(library, "browser-worker.ts") },
      preserveEntrySignatures: "strict",
      output: { entryFileNames: "[name].js", chunkFileNames: "[name].js" },
      checks: { pluginTimings: false },
    },
  },
})
