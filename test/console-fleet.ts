/** The operators' fleet page in a browser: through `umpire fleet` on the server that runs, and with workers to drain. */
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { join } from "node:path"
import { expect, test } from "vitest"
import { openFleetPage } from "../src/server/fleet-page.ts"
import { loadPages } from "../src/server/pages.ts"
import type { Scene } from "./console-scene.ts"

const root = join(import.meta.dirname, "..")
const worker = "paris/10.0.1.5:8485#0"

async function linkOf(child: ChildProcess): Promise<string> {
  let text = ""
  for await (const chunk of child.stdout ?? []) {
    text += String(chunk)
    const link = /http:\S+/.exec(text)?.[0]
    if (link !== undefined) return link
  }
  throw new Error(`umpire fleet ended without a link: ${text}`)
}

/** A gateway as it tells of itself, with one worker elsewhere. */
const gateway = (drained: boolean) => ({
  gateway_id: "gw_paris",
  version: "1.2.3",
  url: "http://10.0.0.1:8484",
  state: "serving",
  region: "paris",
  uptime_s: 60,
  memory_bytes: 1,
  regions: [{ id: "paris", country: "FR" }],
  models: [
    {
      model: "remote",
      workers: [
        {
          id: worker,
          region: "paris",
          healthy: true,
          drained,
          breaker: "closed",
          running: 3,
          waiting: 2,
          outstanding_tokens: 10,
          latency_ms: 4,
          failures: 0,
        },
      ],
    },
  ],
  engines: [],
  journal: { bytes: 0, lag_ms: 0 },
  leases: [],
  seen_s_ago: 0,
})

export function fleetTests(scene: Scene): void {
  test("umpire fleet opens a page of the installation, once, and the console's port does not have it", async () => {
    const { dataDirectory, url } = scene.server
    const child = spawn(process.execPath, [join(root, "bin", "umpire.js"), "fleet", "--no-open"], {
      env: { ...process.env, UMPIRE_DATA_DIR: dataDirectory, UMPIRE_CONFIG: undefined },
      stdio: ["ignore", "pipe", "inherit"],
    })
    try {
      const link = await linkOf(child)
      await scene.page.goto(link)
      const gateways = scene.page.getByRole("table", { name: "Gateways" })
      await gateways.getByText("Serving").waitFor()
      await gateways.getByText(url).waitFor()
      const models = scene.page.getByRole("table", { name: "Models in memory" })
      await models
        .getByRole("row", { name: /umpire-decide(?!-)/ })
        .getByText("loaded", { exact: true })
        .waitFor()
      expect(new URL(scene.page.url()).hash).toBe("")
      await scene.expectSound()
      const late = await scene.browser.openElsewhere()
      await late.goto(new URL("/", link).href)
      await late.getByText("Run umpire fleet, and open the link that it prints.").waitFor()
      // Pasted into the open page.
      await late.goto(link)
      await late.getByText("the link was used").waitFor()
      await late.context().close()
      expect((await fetch(`${url}/fleet.html`, { headers: { accept: "*/*" } })).status).toBe(404)
    } finally {
      const ended = once(child, "exit")
      child.kill("SIGTERM")
      expect(await ended).toEqual([0, null])
    }
  })

  test("a worker is drained on the fleet page after a question, and put back", async () => {
    const drained = new Set<string>()
    const page = await openFleetPage({
      port: 0,
      pages: await loadPages(join(root, "console", "dist"), { entry: "/fleet.html" }),
      client: {
        getFleet: async () => ({
          drained_workers: [...drained],
          gateways: [gateway(drained.has(worker))],
        }),
        drainWorker: async ({ body }) => ({ ...body, drained: Boolean(drained.add(body.worker)) }),
        undrainWorker: async ({ body }) => ({ ...body, drained: !drained.delete(body.worker) }),
      },
    })
    try {
      await scene.page.goto(page.link)
      const row = scene.page.getByRole("table", { name: "Workers" }).getByRole("row", { name: /10\.0\.1\.5/ })
      await row.getByRole("button", { name: `Drain ${worker}` }).click()
      expect(drained.size).toBe(0)
      await scene.submit("Drain")
      await row.getByText("Drained").waitFor()
      expect([...drained]).toEqual([worker])
      await row.getByRole("button", { name: `Undrain ${worker}` }).click()
      await row.getByRole("button", { name: `Drain ${worker}`, exact: true }).waitFor()
      expect(drained.size).toBe(0)
    } finally {
      await page.close()
    }
  })
}
