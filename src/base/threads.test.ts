import { expect, test } from "vitest"
import { Fault } from "../contract/errors.ts"
import { createThreads } from "./threads.ts"

/** Work that is over when its gate opens: so that a test decides what runs and what waits. */
interface Gated {
  readonly gate: Int32Array<SharedArrayBuffer>
  readonly ending: "answer" | "refuse" | "throw" | "die"
}

const source = `
  import { answerJobs } from ${JSON.stringify(new URL("./thread-entry.ts", import.meta.url).href)}
  import { Fault } from ${JSON.stringify(new URL("../contract/errors.ts", import.meta.url).href)}
  answerJobs(({ gate, ending }) => {
    Atomics.wait(gate, 0, 0)
    if (ending === "refuse") throw new Fault("invalid_request", "Cannot", { param: "p", details: [1] })
    if (ending === "throw") throw new TypeError("a mistake")
    if (ending === "die") process.exit(1)
    return ending
  })`
const entry = new URL(`data:text/javascript,${encodeURIComponent(source)}`)
const never = new AbortController().signal

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
  const threads = createThreads<Gated, string>({ entry, threadsMax: 2 })
  const [first, second] = [gated(), opened()]
  const ended: string[] = []
  const note = async (name: string, work: Promise<string>): Promise<void> =>
    void (await work, ended.push(name))
  const all = [
    note("a first", threads.run("a", first, never)),
    note("a second", threads.run("a", second, never)),
    note("b", threads.run("b", opened(), never)),
  ]
  await all[2]
  expect(ended).toEqual(["b"])
  open(first)
  await Promise.all(all)
  expect(ended).toEqual(["b", "a first", "a second"])
})

test("so many may wait, and one more is refused as overloaded", async () => {
  const threads = createThreads<Gated, string>({ entry, threadsMax: 1, waitingMax: 1 })
  const running = gated()
  const ran = threads.run("a", running, never)
  const waited = threads.run("b", opened(), never)
  await expect(threads.run("c", opened(), never)).rejects.toMatchObject({ code: "overloaded" })
  open(running)
  expect(await Promise.all([ran, waited])).toEqual(["answer", "answer"])
})

test("whoever leaves gives up its place in the queue", async () => {
  const threads = createThreads<Gated, string>({ entry, threadsMax: 1, waitingMax: 1 })
  const running = gated()
  const ran = threads.run("a", running, never)
  const leaving = new AbortController()
  const left = threads.run("b", opened(), leaving.signal)
  leaving.abort(new Error("gone"))
  await expect(left).rejects.toThrow("gone")
  const next = threads.run("c", opened(), never)
  open(running)
  expect(await Promise.all([ran, next])).toEqual(["answer", "answer"])
})

test("a refusal in a thread is the same Fault outside, and a mistake is no Fault", async () => {
  const threads = createThreads<Gated, string>({ entry })
  const refused = await threads.run("a", opened("refuse"), never).catch((error: unknown) => error)
  expect(refused).toBeInstanceOf(Fault)
  expect(refused).toMatchObject({ code: "invalid_request", message: "Cannot", param: "p", details: [1] })
  const mistaken = await threads.run("a", opened("throw"), never).catch((error: unknown) => error)
  expect(mistaken).not.toBeInstanceOf(Fault)
  expect(mistaken).toMatchObject({ message: "a mistake" })
})

test("a thread that dies fails its own work, and the next work gets another", async () => {
  const threads = createThreads<Gated, string>({ entry, threadsMax: 1 })
  await expect(threads.run("a", opened("die"), never)).rejects.toThrow("its thread ended")
  expect(await threads.run("a", opened(), never)).toBe("answer")
})

test("a thread that was ended for being idle is replaced by the next work", async () => {
  const threads = createThreads<Gated, string>({ entry, threadsMax: 1, idleMs: 0 })
  for (let time = 0; time < 3; time++) {
    expect(await threads.run("a", opened(), never)).toBe("answer")
    // The timer of the idle thread runs out before this one.
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
})
