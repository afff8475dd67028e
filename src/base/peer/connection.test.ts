/** How the silence of a peer is counted; what else a connection does is in test/peer.test.ts. */
import { expect, onTestFinished, test } from "vitest"
import { Connection } from "./connection.ts"
import type { Channel, ToPeer } from "./peer.ts"

interface EchoService {
  echo: { input: string; output: string }
}

/** A peer without a process, whose answers arrive as those of one do: after the timers of the turn. */
function echoChannel(): Channel {
  let listener: { message(message: unknown): void; end(reason: string): void }
  return {
    pid: undefined,
    listen: (message, end) => (listener = { message, end }),
    send(message: ToPeer) {
      setImmediate(() => {
        if (message.kind === "ping") listener.message({ kind: "pong" })
        if (message.kind === "call")
          listener.message({ kind: "output", id: message.id, output: message.input })
      })
    },
    kill: () => listener.end("it was killed"),
  }
}

test("a peer is not killed for the time in which this process stood still", async () => {
  const silenceMsMax = 40
  const connection = new Connection<EchoService>(echoChannel(), { silenceMsMax })
  onTestFinished(async () => await connection.close())
  expect(await connection.call("echo", "before")).toBe("before")
  // As SIGSTOP, a debugger or a suspended machine stops it: no timer fires, no message is received.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5 * silenceMsMax)
  // After the check that is due by now.
  await new Promise((resolve) => setTimeout(resolve, 0))
  expect(await connection.call("echo", "after")).toBe("after")
})
