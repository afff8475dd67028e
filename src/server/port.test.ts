import { once } from "node:events"
import { type AddressInfo, createServer } from "node:net"
import { expect, test } from "vitest"
import { PortUnavailable, checkPort } from "./port.ts"

test("a port that another server has is refused with what to do, and free again when that ends", async () => {
  const server = createServer().listen(0, "127.0.0.1")
  await once(server, "listening")
  const { port } = server.address() as AddressInfo
  const refused = checkPort("127.0.0.1", port)
  await expect(refused).rejects.toBeInstanceOf(PortUnavailable)
  await expect(refused).rejects.toThrow(
    `Cannot listen on 127.0.0.1:${port}: another process uses the port; stop it, or choose a port with --port`,
  )
  server.close()
  await once(server, "close")
  await checkPort("127.0.0.1", port)
})

test("port 0 is always free, and an address of another machine never", async () => {
  await checkPort("127.0.0.1", 0)
  await expect(checkPort("192.0.2.1", 0)).rejects.toThrow(/this machine has no such address/)
})
