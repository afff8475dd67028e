/** Who can open the fleet page, and what it can ask for. */
import { request } from "node:http"
import { afterAll, beforeAll, expect, test } from "vitest"
import { ClientError } from "../contract/client.ts"
import { openFleetPage } from "./fleet-page.ts"

const told: unknown[] = []
let page: Awaited<ReturnType<typeof openFleetPage>>

beforeAll(async () => {
  page = await openFleetPage({
    port: 0,
    pages: { find: async ({ path }) => (path === "/" ? { status: 200, headers: {}, body: "page" } : null) },
    client: {
      getFleet: async () => {
        told.push("fleet")
        return { drained_workers: [], gateways: [] }
      },
      drainWorker: async ({ body }) => {
        told.push(["drain", body])
        const message = "Cannot drain: no such worker"
        throw new ClientError(404, "not_found", message, { error: { message } })
      },
      undrainWorker: async ({ body }) => {
        told.push(["undrain", body])
        return { ...body, drained: false }
      },
    },
  })
})
afterAll(async () => await page.close())

const addressOf = (): URL => new URL(page.link)

async function post(path: string, bearer: string | null, input: unknown = null, host = addressOf().host) {
  const headers = { host, ...(bearer === null ? {} : { authorization: `Bearer ${bearer}` }) }
  return await new Promise<{ status: number; body: Record<string, unknown> }>((resolve, reject) => {
    const { port } = addressOf()
    request({ host: "127.0.0.1", port, path, method: "POST", headers }, (response) => {
      let text = ""
      response.setEncoding("utf8").on("data", (chunk: string) => (text += chunk))
      const body = (): Record<string, unknown> => JSON.parse(text) as Record<string, unknown>
      response.on("end", () => resolve({ status: response.statusCode ?? 0, body: body() }))
    })
      .on("error", reject)
      .end(JSON.stringify(input))
  })
}

test("the link opens one session, which may run the page's operations and no others", async () => {
  const link = addressOf().hash.slice(1)
  expect(await (await fetch(addressOf().origin)).text()).toBe("page")
  expect((await post("/operations/fleet", null)).status).toBe(401)
  expect((await post("/operations/fleet", link)).status).toBe(401)
  expect((await post("/session", "guessed")).status).toBe(401)
  expect((await post("/session", link, null, "evil.example")).status).toBe(403)
  const opened = await post("/session", link)
  const session = String(opened.body["session"])
  expect((await post("/session", link)).status).toBe(401)
  expect(told).toEqual([])

  expect(await post("/operations/fleet", session)).toEqual({
    status: 200,
    body: { result: { drained_workers: [], gateways: [] } },
  })
  expect((await post("/operations/fleet", session, null, "evil.example")).status).toBe(403)
  expect((await post("/operations/keys.create", session, { name: "x" })).status).toBe(404)
  expect(await post("/operations/workers.drain", session, { worker: "w" })).toMatchObject({
    status: 404,
    body: { error: { message: "Cannot drain: no such worker" } },
  })
  expect((await post("/operations/workers.drain", session, "x".repeat(5000))).status).toBe(422)
  expect(told).toEqual(["fleet", ["drain", { worker: "w" }]])
})
