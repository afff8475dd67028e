import { admitAny, type EngineCall, measure } from "../engine.ts"
import { predicate } from "../branch.ts"
import { spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import path from "node:path"
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest"
import { defaultModelFile, randomModel } from "../../../test/models.ts"
import { greedyWork } from "../../../test/plain-work.ts"
import { LocalEngine } from "./local-engine.ts"

const never = new AbortController().signal
const POLL = { timeout: 60_000, interval: 50 }

const short = {
  organizationId: "a",
  evidence: "The customer is angry.",
  branches: [predicate("Is she angry?"), predicate("Is it late?")],
}
/** Keeps the engine at work for so long that a test which pauses still finds it at work. */
const long = {
  organizationId: "a",
  evidence: "The customer is angry. ".repeat(200),
  branches: Array.from({ length: 5000 }, (_, index) =>
    predicate(`${index}: is this the number of the ticket?`),
  ),
}

const chat = greedyWork({ organizationId: "b", messages: [{ role: "user", content: "Say hello." }] })

let deaths: string[]
let engines: LocalEngine[] = []

async function start(
  options: Partial<ConstructorParameters<typeof LocalEngine>[0]> = {},
): Promise<LocalEngine> {
  deaths = []
  const engine = new LocalEngine({
    modelFile: randomModel("tiny-f16"),
    kind: "generation",
    threads: 1,
    onDeath: (reason) => deaths.push(reason),
    ...options,
  })
  engines.push(engine)
  await engine.load()
  return engine
}

afterEach(async () => {
  await Promise.all(engines.map((engine) => engine.close()))
  engines = []
})

const freely = (signal = never): EngineCall => ({ signal, admit: admitAny })

async function score(engine: LocalEngine, work = short): Promise<Float64Array> {
  return (await engine.score(work, freely())).margins
}

function pidOf(engine: LocalEngine): number {
  if (engine.pid === undefined) throw new Error("no engine process")
  return engine.pid
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

/** Numbers are those of the present process. */
const untilWorking = async (engine: LocalEngine): Promise<void> =>
  await expect.poll(() => engine.stats()?.runs ?? 0, POLL).toBeGreaterThan(0)

test("an engine says what its model is and answers every branch", async () => {
  const engine = await start()
  expect(await engine.facts()).toEqual({
    name: "random-tiny-f16",
    contextTokensMax: 32_768,
    parameterCount: expect.any(Number),
    quantization: "F16",
  })
  const answers = await score(engine)
  expect(answers).toHaveLength(2)
  expect([...answers].every(Number.isFinite)).toBe(true)
})

describe("the death of the engine process", () => {
  test("in the middle of a request is not noticed by its caller", async () => {
    const engine = await start()
    const before = await score(engine)
    const killed = pidOf(engine)
    const kill = async (): Promise<void> => void (engine.pid === killed && process.kill(killed, "SIGKILL"))
    const { margins } = await engine.score(short, { signal: never, admit: kill })
    expect(margins).toEqual(before)
    expect(pidOf(engine)).not.toBe(killed)
    expect(deaths).toHaveLength(1)
  })

  test("while a request is being admitted is not noticed either", async () => {
    const engine = await start()
    const before = await score(engine)
    const killed = pidOf(engine)
    const admit = async (): Promise<void> => {
      if (engine.pid === killed) process.kill(killed, "SIGKILL")
      await expect.poll(() => deaths.length, POLL).toBe(1)
    }
    expect((await engine.score(short, { signal: never, admit })).margins).toEqual(before)
  })

  test("under many requests loses none of them", async () => {
    const engine = await start()
    const expected = await score(engine)
    const runs = Array.from({ length: 20 }, () => score(engine))
    await measure<number>(async (admit) => await engine.score(short, { signal: never, admit }))
    process.kill(pidOf(engine), "SIGKILL")
    const [first = 0, second = 0] = expected
    for (const answers of await Promise.all(runs)) {
      // Decoded together, they may round differently.
      expect([...answers]).toEqual([expect.closeTo(first, 1), expect.closeTo(second, 1)])
    }
  })

  test("twice in one request fails that request, and the engine serves the next", async () => {
    const engine = await start()
    const run = engine.score(long, freely())
    const outcome = expect(run).rejects.toMatchObject({ code: "inference_failed" })
    for (let death = 0; death < 2; death++) {
      await untilWorking(engine)
      process.kill(pidOf(engine), "SIGKILL")
      await expect.poll(() => deaths.length, POLL).toBe(death + 1)
    }
    await outcome
    expect(await score(engine)).toHaveLength(2)
  })

  test("is brought about when it falls silent", async () => {
    const engine = await start({ silenceMsMax: 15_000 })
    const before = await score(engine)
    const stopped = pidOf(engine)
    process.kill(stopped, "SIGSTOP")
    expect(await score(engine)).toEqual(before)
    expect(pidOf(engine)).not.toBe(stopped)
    expect(isAlive(stopped)).toBe(false)
  })
})

describe("an aborted request", () => {
  test("ends with the reason, and the engine stops working on it", async () => {
    const engine = await start()
    const abort = new AbortController()
    const run = engine.score(long, freely(abort.signal))
    const outcome = expect(run).rejects.toThrow("enough")
    await untilWorking(engine)
    abort.abort(new Error("enough"))
    await outcome
    expect(await score(engine)).toHaveLength(2)
    // Far fewer than its branches: it was not worked off.
    await expect.poll(() => engine.stats()?.cacheMisses, POLL).toBe(2)
    expect(engine.stats()?.runs).toBeLessThan(long.branches.length)
  })

  test("is not even started when it was aborted before", async () => {
    const engine = await start()
    await expect(engine.score(short, freely(AbortSignal.abort("enough")))).rejects.toBe("enough")
    const abort = new AbortController()
    const admit = async (): Promise<void> => abort.abort("enough")
    await expect(engine.score(short, { signal: abort.signal, admit })).rejects.toBe("enough")
  })
})

test("a request too long for the context is refused with both lengths", async () => {
  const engine = await start({ memoryBytes: 0 })
  await expect(engine.score(long, freely())).rejects.toMatchObject({
    code: "context_length_exceeded",
    message: expect.stringMatching(/has \d{3,} tokens .* holds 512/),
  })
})

test("a chat that cannot fit by its characters alone is refused while the process of its model stands still", async () => {
  const engine = await start()
  const pid = pidOf(engine)
  process.kill(pid, "SIGSTOP")
  try {
    const messages = [{ role: "user" as const, content: "word ".repeat(10_000_000) }]
    const call = { admit: async () => 1, signal: never, onUsage: () => undefined }
    await expect(engine.generate({ ...chat, messages }, call).next()).rejects.toMatchObject({
      code: "context_length_exceeded",
      message: expect.stringMatching(/more than \d+ tokens/),
    })
  } finally {
    process.kill(pid, "SIGCONT")
  }
})

test("a decision and a chat of one model are of one process", async () => {
  const engine = await start()
  const before = await score(engine)
  const pid = pidOf(engine)
  const generate = engine.generate(chat, {
    signal: never,
    admit: async ({ outputTokensMost }) => outputTokensMost,
    onUsage: () => undefined,
  })
  const deciding = score(engine)
  let last: string | undefined
  for await (const { kind } of generate) last = kind
  expect(last).toBe("end")
  const margins = await deciding
  const [first = 0, second = 0] = before
  expect([...margins]).toEqual([expect.closeTo(first, 1), expect.closeTo(second, 1)])
  expect(pidOf(engine)).toBe(pid)
})

test("closing ends the process and refuses what comes later", async () => {
  const engine = await start()
  const pid = pidOf(engine)
  const run = engine.score(long, freely())
  const outcome = expect(run).rejects.toMatchObject({ code: "inference_failed" })
  await engine.close()
  await outcome
  expect(isAlive(pid)).toBe(false)
  await expect(engine.score(short, freely())).rejects.toMatchObject({ code: "inference_failed" })
})

test("the process ends when its parent is killed", async () => {
  const script = `
    import { LocalEngine } from ${JSON.stringify(new URL("./local-engine.ts", import.meta.url).href)}
    const engine = new LocalEngine({ modelFile: ${JSON.stringify(randomModel("tiny-f16"))}, kind: "generation" })
    await engine.load()
    process.stdout.write(String(engine.pid))
  `
  const parent = spawn(process.execPath, ["--input-type=module", "--eval", script], {
    stdio: ["ignore", "pipe", "inherit"],
  })
  const [printed] = await once(parent.stdout, "data")
  const pid = Number(printed)
  expect(isAlive(pid)).toBe(true)
  parent.kill("SIGKILL")
  await expect.poll(() => isAlive(pid), POLL).toBe(false)
})

describe("a model file that cannot be served is refused with a clear sentence, without trying again", () => {
  let folder: string
  beforeAll(async () => {
    folder = await mkdtemp(path.join(tmpdir(), "umpire-models-"))
  })
  afterAll(() => rm(folder, { recursive: true }))

  const files: [string, () => Promise<Buffer | undefined>, string][] = [
    ["that is missing", () => Promise.resolve(undefined), "it does not exist or is not readable"],
    [
      "of another kind",
      () => Promise.resolve(Buffer.from("PK\u0003\u0004 not a model")),
      "it is not a GGUF file",
    ],
    ["cut in its header", async () => (await readFile(defaultModelFile)).subarray(0, 5000), "it is damaged"],
    [
      "cut in its weights",
      async () => (await readFile(defaultModelFile)).subarray(0, 9_000_000),
      "its file cannot be used",
    ],
  ]
  test.each(files)("a file %s", async (_, make, sentence) => {
    const modelFile = path.join(folder, "model.gguf")
    await rm(modelFile, { force: true })
    const bytes = await make()
    if (bytes !== undefined) await writeFile(modelFile, bytes)
    const failure = expect(start({ modelFile })).rejects
    await failure.toThrow(sentence)
    expect(deaths).toHaveLength(1)
  })
})
