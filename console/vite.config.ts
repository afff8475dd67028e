/** Builds the console into console/dist, and in development serves it in front of a running server. */
import tailwind from "@tailwindcss/vite"
import { dirname, join } from "node:path"
import { defineConfig } from "vite"
import { listSources } from "./list-sources.ts"

const server = process.env["UMPIRE_URL"] ?? "http://127.0.0.1:8484"

export default defineConfig({
  root: import.meta.dirname,
  plugins: [tailwind(), listSources(dirname(import.meta.dirname))],
  build: {
    outDir: "dist",
    emptyOutDir: true,
    target: "es2023",
    // The Content-Security-Policy lets nothing in by data: address.
    assetsInlineLimit: 0,
    // Browsers that can run the console know modulepreload.
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    chunkSizeWarningLimit: 1000,
    rolldownOptions: {
      // The second is served to operators alone, by umpire fleet.
      input: ["index.html", "fleet.html"].map((page) => join(import.meta.dirname, page)),
      // How long a plugin took says nothing on a busy machine.
      checks: { pluginTimings: false },
      // Packages say "use client" for frameworks that render on a server; here everything is a client.
      onwarn: (warning, warn) => void (warning.code === "MODULE_LEVEL_DIRECTIVE" || warn(warning)),
    },
  },
  server: { proxy: { "/v1": server, "/openapi.json": server, "/readyz": server } },
})
