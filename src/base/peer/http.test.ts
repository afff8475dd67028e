/** How the silence of a worker over HTTP is counted; what else it does is in test/peer.test.ts. */
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { expect, onTestFinished, test } from "vitest"
import { answerHttp, httpPeer } from "./http.ts"

interface EchoService {
  echo: { input: string; output: string }
}

test("a worker is not given up for the time in which this process stood still", async () => {
  const settings = { protocol: "1", key: undefined }
  const server = createServer((request, response) => {
    void answerHttp<EchoService>({ echo: async (text) => text }, settings, { request, response })
  })
  onTestFinished(() => void server.close())
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  // True for a TCP server that listens.
  const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  const silenceMsMax = 2_000
  const answer = httpPeer<EchoService>({ ...settings, url, silenceMsMax }).call("echo", "before")
  // As SIGSTOP, a debugger or a suspended machine stops it: no timer fires, nothing is sent or received.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, silenceMsMax + 100)
  expect(await answer).toBe("before")
})
