/** The examples of reverse proxies: each is read by its own program where Debian has it. */
import { spawn } from "node:child_process"
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest"
import { parse } from "yaml"
import type { Endpoint } from "../src/contract/endpoint.ts"
import { table } from "../src/contract/table.ts"
import { unpackDebian } from "./debian.ts"
import { freePort } from "./free-port.ts"
import { startNginx } from "./nginx.ts"
import { type TestServer, startServer } from "./server.ts"

const deploy = join(import.meta.dirname, "..", "deploy")
const testMs = 600_000
const mebibyte = 1024 * 1024
/** Files come as streams, and are larger. */
const largest = Math.max(
  ...Object.values<Endpoint>(table).map(({ reads, bodyBytesMax }) => (reads === "stream" ? 0 : bodyBytesMax)),
)
let server: TestServer
let port: number
let headers: Record<string, string>

beforeAll(async () => {
  server = await startServer({ env: { UMPIRE_HOST: "127.0.0.2", UMPIRE_SERVER_TRUSTED_PROXIES: "1" } })
  port = Number(new URL(server.url).port)
  headers = { authorization: `Bearer ${server.key}` }
})
afterAll(async () => {
  await server.stop()
})

/** Larger than any body that is no file. */
async function upload(url: string): Promise<number> {
  const form = new FormData()
  form.set("purpose", "user_data")
  form.set("file", new Blob([Buffer.alloc(largest + mebibyte)]), "large")
  return (await fetch(`${url}/v1/files`, { method: "POST", headers, body: form })).status
}

test(
  "nginx passes on the largest body that an endpoint takes, files beyond that, and keeps metrics to itself",
  async () => {
    const nginx = await startNginx({ port, addresses: ["127.0.0.2"] })
    onTestFinished(async () => await nginx.stop())
    const { url } = nginx
    expect(await upload(url)).toBe(200)
    const json = { ...headers, "content-type": "application/json" }
    /** Of so many bytes, nearly all of them spaces. */
    const embed = async (bytes: number): Promise<[number, string | null]> => {
      const body = '{"model":"none","input":"a"}'.padEnd(bytes)
      const response = await fetch(`${url}/v1/embeddings`, { method: "POST", headers: json, body })
      await response.text()
      return [response.status, response.headers.get("x-request-id")]
    }
    expect(await embed(largest)).toEqual([404, expect.any(String)])
    // nginx itself: what no endpoint takes reaches no gateway.
    expect(await embed(largest + 2 * mebibyte)).toEqual([413, null])
    expect((await fetch(`${url}/metrics`)).status).toBe(404)
    expect((await fetch(`${url}/v1/models`, { headers })).status).toBe(200)

    // One that was made anew has another address.
    const moved = createServer(({ headers: { host, ...seen } }, response) => {
      told = [host, seen["x-forwarded-proto"], seen["x-forwarded-for"]]
      response.end("the other")
    })
    let told: unknown[] = []
    await new Promise<void>((resolve) => moved.listen(port, "127.0.0.3", resolve))
    const answer = async (): Promise<string> => await (await fetch(`${url}/healthz`)).text()
    expect(await answer()).not.toBe("the other")
    nginx.moveTo(["127.0.0.3"])
    await expect.poll(answer).toBe("the other")
    expect(told).toEqual([new URL(url).host, "http", "127.0.0.1"])
    // One of two is away: the other answers, whichever comes first.
    nginx.moveTo(["127.0.0.4", "127.0.0.2"])
    await expect.poll(answer).not.toBe("the other")
    for (let n = 0; n < 6; n++) expect((await fetch(`${url}/healthz`)).status).toBe(200)
    await new Promise((resolve) => moved.close(resolve))
  },
  testMs,
)

test(
  "Caddy passes on files, passes over a gateway that is away, and keeps metrics to itself",
  async () => {
    const caddy = join(unpackDebian("caddy"), "usr", "bin", "caddy")
    const text = readFileSync(join(deploy, "Caddyfile"), "utf8")
    for (const said of ["\n:8484 {", "gateway-1:8484 gateway-2:8484", "max_size 201MiB"])
      expect(text).toContain(said)
    const url = `http://127.0.0.1:${await freePort()}`
    const folder = mkdtempSync(join(tmpdir(), "umpire-caddy-"))
    const file = join(folder, "Caddyfile")
    // Nothing listens at the first address.
    const ours = text
      .replace("\n:8484 {", `\n{\n\tadmin off\n}\n${url} {`)
      .replace("gateway-1:8484 gateway-2:8484", `127.0.0.3:${port} 127.0.0.2:${port}`)
    writeFileSync(file, ours)
    const child = spawn(caddy, ["run", "--config", file], {
      stdio: "ignore",
      env: { HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder },
    })
    onTestFinished(async () => {
      const ended = new Promise((resolve) => child.once("exit", resolve))
      child.kill("SIGKILL")
      await ended
    })
    const status = async (path: string): Promise<number> =>
      await fetch(url + path, { headers }).then(
        (response) => response.status,
        () => 0,
      )
    await expect.poll(async () => await status("/readyz"), { timeout: 120_000 }).toBe(200)
    for (let n = 0; n < 6; n++) expect(await status("/v1/models")).toBe(200)
    expect(await upload(url)).toBe(200)
    expect(await status("/metrics")).toBe(404)
  },
  testMs,
)

test("Traefik's file names both gateways and their health", () => {
  const { http } = parse(readFileSync(join(deploy, "traefik.yaml"), "utf8")) as {
    http: { services: { umpire: { loadBalancer: object } } }
  }
  expect(http.services.umpire.loadBalancer).toMatchObject({
    servers: [{ url: "http://gateway-1:8484" }, { url: "http://gateway-2:8484" }],
    healthCheck: { path: "/readyz" },
  })
})
