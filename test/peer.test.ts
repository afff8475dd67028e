/** What every transport to a peer guarantees, and what the supervisor adds: one suite over all of them. */
import { fork } from "node:child_process"
import { once } from "node:events"
import { setTimeout as delay } from "node:timers/promises"
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest"
import { Connection, type ConnectionSettings } from "../src/base/peer/connection.ts"
import { httpPeer } from "../src/base/peer/http.ts"
import { type Channel, type Peer, PeerFailure, PeerGone, windowItems } from "../src/base/peer/peer.ts"
import { Supervisor, childChannel, threadChannel } from "../src/base/peer/supervisor.ts"
import { Fault } from "../src/contract/errors.ts"
import type { ConformanceService, OpenBehaviour } from "./programs/conformance-peer.ts"

const entry = new URL("./programs/conformance-peer.ts", import.meta.url)
const POLL = { timeout: 60_000, interval: 20 }

const channels: [string, () => Channel][] = [
  ["a child process", () => childChannel(entry)],
  ["a thread", () => threadChannel(entry)],
]

interface TestPeer {
  readonly peer: Peer<ConformanceService>
  readonly kill: () => void
}
type Connect = (settings?: { silenceMsMax: number }) => Promise<TestPeer>

const transports: [string, Connect][] = [
  ...channels.map(([name, spawn]): [string, Connect] => [
    name,
    async (settings) => {
      const peer = new Connection<ConformanceService>(spawn(), settings)
      onTestFinished(async () => await peer.close())
      return { peer, kill: () => peer.kill("the test kills it") }
    },
  ]),
  ["a worker over HTTP", connectHttp],
]

async function connectHttp(settings?: { silenceMsMax: number }): Promise<TestPeer> {
  const child = fork(entry, ["http"], { execArgv: [], stdio: ["ignore", "ignore", "ignore", "ipc"] })
  const kill = (): void => void child.kill("SIGKILL")
  onTestFinished(kill)
  const [{ port }] = (await once(child, "message")) as [{ port: number }]
  const url = new URL(`http://127.0.0.1:${port}`)
  return { peer: httpPeer<ConformanceService>({ url, protocol: "1", key: "k", ...settings }), kill }
}

const unhandled: unknown[] = []
const note = (reason: unknown): void => void unhandled.push(reason)
beforeEach(() => {
  unhandled.length = 0
  process.on("unhandledRejection", note)
})
afterEach(async () => {
  await delay(0)
  process.off("unhandledRejection", note)
  expect(unhandled).toEqual([])
})

describe.each(transports)("%s", (_name, connect) => {
  test("answers calls with values of every kind, typed arrays as they are", async () => {
    const { peer } = await connect()
    const value = {
      text: "ä\u0000",
      absent: undefined,
      floats: Float32Array.of(0.5, Number.NaN, -0),
      doubles: Float64Array.of(0.1 + 0.2, -5e-324),
      bytes: Uint8Array.of(0, 255),
      big: 2n ** 70n,
    }
    expect(await peer.call("echo", value)).toEqual(value)
    const answers = await Promise.all(Array.from({ length: 100 }, (_, n) => peer.call("echo", n)))
    expect(answers).toEqual(Array.from({ length: 100 }, (_, n) => n))
  })

  test("a Fault is the same Fault here, and another error is none", async () => {
    const { peer } = await connect()
    const fault = await peer.call("fail", "fault").catch((error: unknown) => error)
    expect(fault).toBeInstanceOf(Fault)
    expect(fault).toMatchObject({
      code: "overloaded",
      message: "Cannot",
      param: "p",
      details: [1],
      retryAfterMs: 7,
    })
    const mistake = await peer.call("fail", "error").catch((error: unknown) => error)
    expect(mistake).toBeInstanceOf(PeerFailure)
    expect(mistake).toMatchObject({ message: "a mistake" })
  })

  test("what cannot be sent fails that call alone, in either direction", async () => {
    const { peer } = await connect()
    await expect(peer.call("echo", () => null)).rejects.toThrow(/clone/)
    await expect(peer.call("unclonable", null)).rejects.toThrow(/clone/)
    let deep: unknown = null
    for (let level = 0; level < 50_000; level++) deep = [deep]
    await expect(peer.call("echo", deep)).rejects.toThrow()
    expect(await peer.call("echo", 1)).toBe(1)
  })

  test("an aborted call ends with the reason here and is cancelled there", async () => {
    const { peer } = await connect()
    const abort = new AbortController()
    const waits = peer.call("wait", null, abort.signal)
    await expect.poll(async () => (await peer.call("seen", null)).waiting, POLL).toBe(1)
    abort.abort(new Error("enough"))
    await expect(waits).rejects.toThrow("enough")
    await expect.poll(async () => (await peer.call("seen", null)).cancelled, POLL).toBe(1)
    await expect(peer.call("echo", 1, abort.signal)).rejects.toThrow("enough")
  })

  test("a stream pauses after its first item, is handed a value, and ends with its output", async () => {
    const { peer } = await connect()
    const stream = await peer.stream("count", 3)
    expect(await stream.next()).toEqual({ done: false, value: 1 })
    expect(await peer.call("seen", null)).toMatchObject({ produced: 1 })
    expect(await stream.next("go")).toEqual({ done: false, value: 2 })
    expect(await stream.next()).toEqual({ done: false, value: 3 })
    expect(await stream.next()).toEqual({ done: true, value: "go" })
  })

  test("one that is killed fails all that is open and all that comes later", async () => {
    const { peer, kill } = await connect()
    const stream = await peer.stream("stop", null)
    await stream.next()
    const open = [peer.call("wait", null), stream.next()].map(
      async (one) => await one.catch((error: unknown) => error),
    )
    await expect.poll(async () => (await peer.call("seen", null)).waiting, POLL).toBe(2)
    kill()
    const gone = expect.any(PeerGone)
    expect(await Promise.all(open)).toEqual([gone, gone])
    await expect(peer.call("echo", 1)).rejects.toBeInstanceOf(PeerGone)
    const late = peer.stream("count", 1).then(async (one) => await one.next())
    await expect(late).rejects.toBeInstanceOf(PeerGone)
  })

  test("one that exits fails what is open", async () => {
    const { peer } = await connect()
    await expect(peer.call("exit", null)).rejects.toBeInstanceOf(PeerGone)
  })

  test("one that hangs is killed", async () => {
    const { peer } = await connect({ silenceMsMax: 2000 })
    // The time counts from the first answer: a busy machine may take long to start it. Over HTTP it counts for each call,
    // and this one may itself be too late.
    await peer.call("echo", 1).catch((error: unknown) => expect(error).toBeInstanceOf(PeerGone))
    await expect(peer.call("hang", null)).rejects.toMatchObject({ reason: "it fell silent" })
  })
})

describe.each(channels)("the channel of %s", (_name, spawn) => {
  function connect(settings: ConnectionSettings = {}): Connection<ConformanceService> {
    const connection = new Connection<ConformanceService>(spawn(), settings)
    onTestFinished(async () => await connection.close())
    return connection
  }

  function supervise(open: OpenBehaviour, settings: { isEager?: boolean; startMsMax?: number } = {}) {
    const deaths: string[] = []
    const peer = new Supervisor<ConformanceService>({
      spawn,
      open,
      onDeath: (reason) => deaths.push(reason),
      ...settings,
    })
    onTestFinished(async () => await peer.close())
    return { peer, deaths }
  }

  test("a stream is never further ahead of its reader than the window", async () => {
    const peer = connect()
    const many = windowItems * 10
    const stream = await peer.stream("count", many)
    await stream.next()
    await stream.next("go")
    await expect
      .poll(async () => (await peer.call("seen", null)).produced, POLL)
      .toBeGreaterThanOrEqual(windowItems)
    expect((await peer.call("seen", null)).produced).toBeLessThanOrEqual(windowItems + 2)
    for (let number = 3; number <= many; number++)
      expect(await stream.next()).toEqual({ done: false, value: number })
    expect(await stream.next()).toMatchObject({ done: true })
  })

  test("a cancelled stream is read to its end", async () => {
    const peer = connect()
    const stream = await peer.stream("stop", null)
    expect(await stream.next()).toEqual({ done: false, value: "started" })
    const abort = new AbortController()
    const second = stream.next(undefined, abort.signal)
    await expect.poll(async () => (await peer.call("seen", null)).waiting, POLL).toBe(1)
    abort.abort(new Error("enough"))
    await expect(second).rejects.toThrow("enough")
    expect(await stream.next()).toEqual({ done: false, value: "stopped" })
    await expect(stream.next()).rejects.toThrow("cancelled")
  })

  test.each([[null], [{ kind: "other", id: 1 }], [{ kind: "output" }], [{ kind: "failure", id: 1 }]])(
    "one that sends garbage is killed: %j",
    async (message) => {
      await expect(connect().call("garbage", message)).rejects.toMatchObject({ reason: "it sent garbage" })
    },
  )

  test("so many calls may be pending, and one more is refused", async () => {
    const peer = connect({ pendingMax: 2 })
    const abort = new AbortController()
    const pending = [peer.call("wait", null, abort.signal), peer.call("wait", null)]
    const outcomes = Promise.allSettled(pending)
    await expect(peer.call("echo", 1)).rejects.toMatchObject({ code: "overloaded" })
    abort.abort(new Error("enough"))
    await expect(pending[0]).rejects.toThrow("enough")
    expect(await peer.call("echo", 1)).toBe(1)
    await peer.close()
    await outcomes
  })

  describe("supervised", () => {
    test("it starts with the first call, and again with the next one after a death", async () => {
      const { peer, deaths } = supervise("works")
      expect(peer.opened).toBeUndefined()
      expect(await peer.call("echo", 1)).toBe(1)
      expect(peer.opened).toBe("works")
      await expect(peer.call("exit", null)).rejects.toBeInstanceOf(PeerGone)
      expect(await peer.call("echo", 2)).toBe(2)
      expect(deaths).toHaveLength(1)
      expect(peer.restarts).toBe(1)
    })

    test("an eager one starts again without a call", async () => {
      const { peer } = supervise("works", { isEager: true })
      await expect(peer.call("exit", null)).rejects.toBeInstanceOf(PeerGone)
      await expect.poll(() => peer.restarts, POLL).toBe(1)
    })

    test("what cannot be opened fails with its own words, without another try", async () => {
      const { peer, deaths } = supervise("refuses")
      const refusal = { code: "invalid_request", message: "Cannot open" }
      const both = [peer.call("echo", 1), peer.call("echo", 2)]
      for (const one of await Promise.allSettled(both)) expect(one).toMatchObject({ reason: refusal })
      expect(deaths).toEqual(["Cannot open"])
    })

    test("one that exits while it starts is tried three times", async () => {
      // The clock of the backoff stands still: a busy machine may pause for longer than it.
      vi.useFakeTimers({ toFake: ["performance"] })
      onTestFinished(() => void vi.useRealTimers())
      const { peer, deaths } = supervise("exits")
      await expect(peer.call("echo", 1)).rejects.toBeInstanceOf(PeerGone)
      expect(deaths).toHaveLength(3)
      await expect(peer.call("echo", 1)).rejects.toBeInstanceOf(PeerGone)
      expect(deaths, "no start within the backoff").toHaveLength(3)
    })

    test("one that hangs while it starts is killed, and whoever left before has left", async () => {
      const { peer, deaths } = supervise("hangs", { startMsMax: 200 })
      const abort = new AbortController()
      const left = peer.call("echo", 1, abort.signal)
      abort.abort(new Error("enough"))
      await expect(left).rejects.toThrow("enough")
      await expect(peer.call("echo", 1)).rejects.toMatchObject({ reason: "it did not start in time" })
      expect(deaths).toHaveLength(3)
    })

    test("closed, it fails what is open and starts no more", async () => {
      const { peer, deaths } = supervise("works", { isEager: true })
      await peer.ready()
      const waits = expect(peer.call("wait", null)).rejects.toBeInstanceOf(PeerGone)
      await peer.close()
      await waits
      await expect(peer.call("echo", 1)).rejects.toBeInstanceOf(PeerGone)
      expect(deaths).toEqual([])
    })

    test("closed while it starts, nothing hangs", async () => {
      const { peer } = supervise("hangs")
      const waits = expect(peer.call("echo", 1)).rejects.toBeInstanceOf(PeerGone)
      await delay(0)
      await peer.close()
      await waits
    })
  })
})

test("a process whose parent leaves ends at once, without exit handlers, after its answers have left", async () => {
  const child = fork(entry, {
    serialization: "advanced",
    execArgv: [],
    stdio: ["ignore", "ignore", "pipe", "ipc"],
  })
  onTestFinished(() => void child.kill("SIGKILL"))
  let written = ""
  child.stderr?.on("data", (chunk: Buffer) => (written += chunk.toString()))
  const answers: { output: Uint8Array }[] = []
  const answered = new Promise<void>((resolve) => {
    child.on("message", (answer: { output: Uint8Array }) => {
      if (answers.push(answer) === 10) resolve()
    })
  })
  for (let id = 0; id < 10; id++)
    child.send({ kind: "call", id, method: "echo", input: new Uint8Array(2 ** 20).fill(id) })
  await answered
  const ended = Promise.all([once(child, "exit"), child.stderr && once(child.stderr, "end")])
  child.disconnect()
  const [exit] = await ended
  expect(exit).toEqual([null, "SIGKILL"])
  expect(answers.map(({ output }) => [output.length, output.at(-1)])).toEqual(
    Array.from({ length: 10 }, (_, id) => [2 ** 20, id]),
  )
  expect(written).toBe("")
})
