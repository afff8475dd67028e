import { afterAll, beforeAll, test } from "vitest"
import { killUnderLoad, memoryStaysLevel } from "./engine-load.ts"
import { type TestServer, startServer } from "./server.ts"

let server: TestServer
beforeAll(async () => void (server = await startServer({ env: { UMPIRE_ENGINE_CACHE_MEMORY_MIB: "16" } })))
afterAll(async () => void (await server.stop()))

test("the engine killed 20 times under load of 1,000 requests", async () => {
  await killUnderLoad(server, 1000, 20)
})

test("memory is level after 1,000 requests", async () => {
  await memoryStaysLevel(server, 1000, 1.1)
})
