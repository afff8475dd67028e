import { afterAll, beforeAll, test } from "vitest"
import { killUnderLoad, memoryStaysLevel } from "./engine-load.ts"
import { type TestServer, startServer } from "./server.ts"

let server: TestServer
beforeAll(async () => void (server = await startServer({ env: { UMPIRE_ENGINE_CACHE_MEMORY_MIB: "16" } })))
afterAll(async () => void (await server.stop()))

test("the engine killed under load: requests are answered or end in a clean 500, and the next ones work", async () => {
  await killUnderLoad(server, 40, 3)
})

test("memory is level after many requests", async () => {
  await memoryStaysLevel(server, 50, 1.25)
})
