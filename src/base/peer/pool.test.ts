import { expect, test } from "vitest"
import { Fault } from "../../contract/errors.ts"
import { threadChannel } from "./supervisor.ts"
import { type Pool, type PoolSettings, createPool } from "./pool.ts"

/** Work that is over when its gate opens: so that a test decides what runs and what waits. */
interface Gated {
  readonly gate: Int32Array<SharedArrayBuffer>
  readonly ending: "answer" | "refuse" | "throw" | "die"
}

const source = `
  import { servePeer } from ${JSON.stringify(new URL("./serve.ts", import.meta.url).href)}
  import { Fault } from ${JSON.stringify(new URL("../../contract/errors.ts", import.meta.url).href)}
  servePeer({ run: ({ gate, ending }) => {
    Atomics.wait(gate, 0, 0)
    if (ending === "refuse") throw new Fault("invalid_request", "Cannot", { param: "p", details: [1] })
    if (ending === "throw") throw new TypeError("a mistake")
    if (ending === "die") process.exit(1)
    return ending
  } })`
const entry = new URL(`data:text/javascript,${encodeURIComponent(source)}`)
const never = new AbortController().signal

interface GatedService {
  run: { input: Gated; output: string }
}

const createGated = (settings: Partial<PoolSettings> = {}): Pool<GatedService> =>
  createPool({ spawn: () => threadChannel(entry), ...settings })

const gated = (ending: Gated["ending"] = "answer"): Gated => ({
  gate: new Int32Array(new SharedArrayBuffer(4)),
  ending,
})

function open({ gate }: Gated): void {
  Atomics.store(gate, 0, 1)
  Atomics.notify(gate, 0)
}

function opened(ending: Gated["ending"] = "answer"): Gated {
  const job = gated(ending)
  open(job)
  return job
}

test("one owner's work takes one thread, and another's is done meanwhile", async () => {
  const pool = createGated({ peersMax: 2 })
  const [first, second] = [gated(), opened()]
  const ended: string[] = []
  const note = async (name: string, work: Promise<string>): Promise<void> =>
    void (await work, ended.push(name))
  const all = [
    note("a first", pool.run("a", "run", first, never)),
    note("a second", pool.run("a", "run", second, never)),
    note("b", pool.run("b", "run", opened(), never)),
  ]
  await all[2]
  expect(ended).toEqual(["b"])
  open(first)
  await Promise.all(all)
  expect(ended).toEqual(["b", "a first", "a second"])
})

test("owners take turns: who has waited least often goes before the rest of a flood", async () => {
  const pool = createGated({ peersMax: 1 })
  const running = gated()
  const ended: string[] = []
  const note = async (owner: string, job: Gated): Promise<void> =>
    void (await pool.run(owner, "run", job, never), ended.push(owner))
  const all = [
    note("a", running),
    ...["a", "a", "a", "b", "b", "c"].map(async (owner) => await note(owner, opened())),
  ]
  open(running)
  await Promise.all(all)
  expect(ended).toEqual(["a", "b", "c", "a", "b", "a", "a"])
})

test("so many may wait, and one more is refused as overloaded", async () => {
  const pool = createGated({ peersMax: 1, waitingMax: 1 })
  const running = gated()
  const ran = pool.run("a", "run", running, never)
  const waited = pool.run("b", "run", opened(), never)
  await expect(pool.run("c", "run", opened(), never)).rejects.toMatchObject({ code: "overloaded" })
  open(running)
  expect(await Promise.all([ran, waited])).toEqual(["answer", "answer"])
})

test("one owner may fill half of the queue, and the other half is for everyone else", async () => {
  const pool = createGated({ peersMax: 1, waitingMax: 4 })
  const running = gated()
  const admitted = ["a", "a", "a", "b", "b"].map(
    async (owner, index) => await pool.run(owner, "run", index === 0 ? running : opened(), never),
  )
  for (const owner of ["a", "b", "c"])
    await expect(pool.run(owner, "run", opened(), never)).rejects.toMatchObject({ code: "overloaded" })
  open(running)
  expect(await Promise.all(admitted)).toHaveLength(5)
})

test("whoever leaves gives up its place in the queue", async () => {
  const pool = createGated({ peersMax: 1, waitingMax: 1 })
  const running = gated()
  const ran = pool.run("a", "run", running, never)
  const leaving = new AbortController()
  const left = pool.run("b", "run", opened(), leaving.signal)
  leaving.abort(new Error("gone"))
  await expect(left).rejects.toThrow("gone")
  const next = pool.run("c", "run", opened(), never)
  open(running)
  expect(await Promise.all([ran, next])).toEqual(["answer", "answer"])
})

test("a refusal in a thread is the same Fault outside, and a mistake is no Fault", async () => {
  const pool = createGated()
  const refused = await pool.run("a", "run", opened("refuse"), never).catch((error: unknown) => error)
  expect(refused).toBeInstanceOf(Fault)
  expect(refused).toMatchObject({ code: "invalid_request", message: "Cannot", param: "p", details: [1] })
  const mistaken = await pool.run("a", "run", opened("throw"), never).catch((error: unknown) => error)
  expect(mistaken).not.toBeInstanceOf(Fault)
  expect(mistaken).toMatchObject({ message: "a mistake" })
})

test("a thread that dies fails its own work, and the next work gets another", async () => {
  const pool = createGated({ peersMax: 1 })
  await expect(pool.run("a", "run", opened("die"), never)).rejects.toMatchObject({
    reason: "its thread ended",
  })
  expect(await pool.run("a", "run", opened(), never)).toBe("answer")
})

test("a thread that was ended for being idle is replaced by the next work", async () => {
  const pool = createGated({ peersMax: 1, idleMsMax: 0 })
  for (let time = 0; time < 3; time++) {
    expect(await pool.run("a", "run", opened(), never)).toBe("answer")
    // The timer of the idle thread runs out before this one.
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
})

test("of two peers the spare takes the place of one that died, without a start in between", async () => {
  let started = 0
  const pool = createPool<GatedService>({
    spawn: () => (started++, threadChannel(entry)),
    peersMax: 1,
    hasSpare: true,
  })
  await expect(pool.run("a", "run", opened("die"), never)).rejects.toMatchObject({ code: "inference_failed" })
  expect(started).toBe(2)
  expect(await pool.run("a", "run", opened(), never)).toBe("answer")
  expect(started, "the next spare").toBe(3)
  await pool.close()
  await expect(pool.run("a", "run", opened(), never)).rejects.toMatchObject({ code: "not_ready" })
})
