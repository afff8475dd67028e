/** How long the successor of a peer that died is waited for; what else a supervisor does is in test/peer.test.ts. */
import { expect, onTestFinished, test, vi } from "vitest"
import { type Channel, PeerGone, type ToPeer } from "./peer.ts"
import { Supervisor } from "./supervisor.ts"

interface CrashService {
  open: { input: null; output: null }
  crash: { input: null; output: null }
}

/** A peer without a process, which dies when it is asked to. */
function crashChannel(): Channel {
  let listener: { message(message: unknown): void; end(reason: string): void }
  return {
    pid: undefined,
    listen: (message, end) => (listener = { message, end }),
    send(message: ToPeer) {
      if (message.kind !== "call") return
      const { id, method } = message
      queueMicrotask(() => {
        if (method === "open") listener.message({ kind: "output", id, output: null })
        else listener.end("it crashed")
      })
    },
    kill: () => listener.end("it was killed"),
  }
}

test("one that was open starts again within a second, however often requests crash it", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "performance"] })
  onTestFinished(() => void vi.useRealTimers())
  const peer = new Supervisor<CrashService>({
    spawn: crashChannel,
    open: null,
    isEager: true,
  })
  onTestFinished(async () => await peer.close())
  await peer.ready()
  for (let crashes = 1; crashes <= 20; crashes++) {
    await expect(peer.call("crash", null)).rejects.toBeInstanceOf(PeerGone)
    await vi.advanceTimersByTimeAsync(1_000)
    expect(peer.restarts).toBe(crashes)
  }
})
