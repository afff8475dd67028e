/** The encoder's process: killed, hung, out of memory, given a bad file; callers get an answer or a clean error. */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtemp, readFile, readdir, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, describe, expect, test, vi } from "vitest"
import { admitAny, type EngineCall, measure } from "../src/engine/engine.ts"
import { predicate } from "../src/engine/branch.ts"
import {
  type EncoderEngine,
  type EncoderEngineOptions,
  startEncoderEngine,
} from "../src/engine/encoder/engine.ts"
import { baseDecisionModelFile, decisionModelFile, multilingualModelFile } from "./models.ts"

const never = new AbortController().signal
const POLL = { timeout: 60_000, interval: 50 }
const short = {
  organizationId: "a",
  evidence: "The customer is angry because the parcel is late.",
  branches: [predicate("Is the parcel late?"), predicate("Is this about the weather?")],
}
/** Keeps the engine at work for a while, in many runs. */
const long = {
  organizationId: "a",
  evidence: "The customer is angry. ".repeat(60),
  branches: Array.from({ length: 2000 }, (_, index) => predicate(`${index}: is this the ticket?`)),
}

let deaths: string[]
const engines: EncoderEngine[] = []

async function start(options: Partial<EncoderEngineOptions> = {}): Promise<EncoderEngine> {
  deaths = []
  const onDeath = (reason: string) => deaths.push(reason)
  const engine = await startEncoderEngine({ modelFile: decisionModelFile, threads: 1, onDeath, ...options })
  engines.push(engine)
  return engine
}

afterEach(async () => {
  await Promise.all(engines.splice(0).map((engine) => engine.close()))
})

const freely = (signal = never): EngineCall => ({ signal, admit: admitAny })

async function score(engine: EncoderEngine, work = short): Promise<Float64Array> {
  return (await engine.score(work, freely())).margins
}

function pidOf({ pid }: EncoderEngine): number {
  if (pid === undefined) throw new Error("no engine process")
  return pid
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

const untilWorking = async (engine: EncoderEngine): Promise<void> => {
  await expect.poll(() => engine.stats()?.jobs, POLL).toBe(1)
}

test.each([
  [baseDecisionModelFile, "umpire-decide", 110],
  [decisionModelFile, "umpire-decide-small", 33],
  [multilingualModelFile, "umpire-decide-multilingual", 106],
])("an engine says what its model is and answers every branch: %s", async (modelFile, name, millions) => {
  const engine = await start({ modelFile })
  const { parameterCount, ...facts } = await engine.facts()
  expect(facts).toEqual({ name, contextTokensMax: 20_480, quantization: "INT8" })
  expect(Math.floor(parameterCount / 1e6)).toBe(millions)
  const [late = 0, weather = 0] = await score(engine)
  expect(late).toBeGreaterThan(0)
  expect(weather).toBeLessThan(0)
})

describe("the model for many languages", () => {
  const english = "Is the parcel late?"
  const late = [
    ["de", "Die Kundin ist verärgert, weil das Paket zu spät kommt.", "Kommt das Paket zu spät?"],
    ["es", "El cliente está enfadado porque el paquete llega tarde.", "¿Llega tarde el paquete?"],
    ["ru", "Клиентка недовольна: посылка опаздывает уже на неделю.", "Посылка опаздывает?"],
    ["ar", "العميل غاضب لأن الطرد تأخر كثيرا.", "هل تأخر الطرد؟"],
    ["hi", "ग्राहक नाराज़ है क्योंकि पार्सल देर से आया।", "क्या पार्सल देर से आया?"],
    ["ja", "荷物の到着が遅れているので、お客様が怒っています。", "荷物は遅れていますか？"],
    ["ko", "택배가 늦게 와서 고객이 화가 났어요.", "택배가 늦었나요?"],
    ["zh", "包裹迟到了，顾客很生气。", "包裹迟到了吗？"],
  ] as const

  test("reads a text in its language, asked in that and in English", async () => {
    const engine = await start({ modelFile: multilingualModelFile })
    for (const [language, evidence, question] of late) {
      const branches = [question, english, "Is the customer happy?"].map((text) => predicate(text))
      const [own = 0, asked = 0, happy = 0] = await score(engine, { ...short, evidence, branches })
      expect([language, own > 0, asked > 0, happy < 0]).toEqual([language, true, true, true])
    }
  })

  test("reads any text: unpaired surrogates, marks without width, mixed directions, words without end", async () => {
    const engine = await start({ modelFile: multilingualModelFile })
    const odd = [
      "\ud800",
      "\udfff",
      "\u200b\u200d\ufeff",
      "\u202e\u2066",
      "\0",
      "é".normalize("NFD"),
      "字".repeat(600),
      "x".repeat(2_000),
    ]
    for (const text of [...odd, odd.join(" ")]) {
      const margins = await score(engine, {
        ...short,
        evidence: text,
        branches: [predicate(text.slice(0, 200))],
      })
      expect(margins.every(Number.isFinite)).toBe(true)
    }
    const [plain] = await score(engine)
    const [marked] = await score(engine, { ...short, evidence: `${short.evidence}\u200b` })
    expect(marked).toBe(plain)
  })
})

describe("the death of the process", () => {
  test("in the middle of a request is not noticed by its caller", async () => {
    const engine = await start()
    const before = await score(engine)
    const killed = pidOf(engine)
    const admitted: number[] = []
    const { margins } = await engine.score(short, {
      signal: never,
      admit: async (tokens) => {
        if (admitted.push(tokens) === 1) process.kill(killed, "SIGKILL")
      },
    })
    expect(margins).toEqual(before)
    // It is begun anew, and so admitted anew.
    expect(admitted).toEqual([expect.any(Number), admitted[0]])
    expect(pidOf(engine)).not.toBe(killed)
    expect(deaths).toHaveLength(1)
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

  test("is brought about when it hangs", async () => {
    const engine = await start({ silenceMsMax: 20_000 })
    const before = await score(engine)
    const stopped = pidOf(engine)
    process.kill(stopped, "SIGSTOP")
    expect(await score(engine)).toEqual(before)
    expect(isAlive(stopped)).toBe(false)
  })

  test("follows that of its parent", async () => {
    const script = `
      import { startEncoderEngine } from ${JSON.stringify(new URL("../src/engine/encoder/engine.ts", import.meta.url).href)}
      const engine = await startEncoderEngine({ modelFile: ${JSON.stringify(decisionModelFile)} })
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
})

test("an aborted request ends with the reason, and the engine stops working on it", async () => {
  const engine = await start()
  const abort = new AbortController()
  const outcome = expect(engine.score(long, freely(abort.signal))).rejects.toThrow("enough")
  await untilWorking(engine)
  abort.abort(new Error("enough"))
  await outcome
  await expect.poll(() => engine.stats()?.jobs, POLL).toBe(0)
  await expect(engine.score(short, freely(AbortSignal.abort("before")))).rejects.toBe("before")
})

test("the process holds work while it is being admitted, and none that is refused or left", async () => {
  const engine = await start()
  const admissions: PromiseWithResolvers<void>[] = []
  const leave = new AbortController()
  const works = [never, never, leave.signal].map((signal) =>
    engine.score(short, {
      signal,
      admit: async () => {
        const admission = Promise.withResolvers<void>()
        admissions.push(admission)
        await admission.promise
      },
    }),
  )
  const outcomes = Promise.allSettled(works)
  await expect.poll(() => engine.stats()?.held, POLL).toBe(3)
  expect(engine.stats()?.runs).toBe(0)
  await expect.poll(() => admissions.length, POLL).toBe(3)
  admissions[0]?.reject(new Error("no credit"))
  admissions[1]?.reject(new Error("no credit"))
  leave.abort(new Error("left"))
  const refused = { status: "rejected", reason: new Error("no credit") }
  expect(await outcomes).toEqual([refused, refused, { status: "rejected", reason: new Error("left") }])
  await expect.poll(() => engine.stats()?.held, POLL).toBe(0)
  expect(engine.stats()?.runs).toBe(0)
})

test("a request too long for the context is refused, and one that fits it just so is counted", async () => {
  const engine = await start()
  // Two special tokens around the evidence; "question : late ?" and a separator.
  const fits = { ...short, evidence: "a ".repeat(20_480 - 2 - 5), branches: [predicate("late?")] }
  const size = await measure<number>(async (admit) => await engine.score(fits, { signal: never, admit }))
  expect(size).toBe(20_480)
  await expect(engine.score({ ...fits, evidence: `${fits.evidence}a` }, freely())).rejects.toMatchObject({
    code: "context_length_exceeded",
    message: expect.stringMatching(/has 20481 tokens .* holds 20480/),
  })
})

test("closing ends the process and refuses what comes later", async () => {
  const engine = await start()
  const pid = pidOf(engine)
  const outcome = expect(engine.score(long, freely())).rejects.toMatchObject({
    code: "inference_failed",
  })
  await engine.close()
  await outcome
  expect(isAlive(pid)).toBe(false)
  await expect(engine.score(short, freely())).rejects.toMatchObject({ code: "inference_failed" })
})

test("a process that runs out of memory fails its request, and the next is served by another", async () => {
  const engine = await start()
  // The address space that it has now, and little more: the evidence finds no room.
  const limit = spawn("prlimit", ["--pid", String(pidOf(engine)), "--as=1"], { stdio: "ignore" })
  await once(limit, "exit")
  const before = pidOf(engine)
  expect(await score(engine, { ...short, evidence: "word ".repeat(4000) })).toHaveLength(2)
  expect(pidOf(engine)).not.toBe(before)
  expect(deaths).toHaveLength(1)
})

test("a file that cannot be served is refused with a clear sentence, after one start", async () => {
  const folder = await mkdtemp(join(tmpdir(), "umpire-onnx-"))
  const modelFile = join(folder, "model.onnx")
  const whole = await readFile(decisionModelFile)
  const broken = Buffer.from(whole)
  broken.fill(0xff, 1000, 3_000_000)
  try {
    for (const [bytes, sentence] of [
      [whole.subarray(0, 9_000_000), /is truncated/],
      [Buffer.from("not a model"), /is not an ONNX file/],
      [broken, /Cannot load the model/],
    ] as const) {
      await writeFile(modelFile, bytes)
      await expect(start({ modelFile })).rejects.toThrow(sentence)
      expect(deaths).toHaveLength(1)
    }
  } finally {
    await rm(folder, { recursive: true })
  }
})

const product = (a: Float32Array, b: Float32Array): number =>
  a.reduce((sum, value, at) => sum + value * (b[at] ?? 0), 0)

const vectorOf = async (engine: EncoderEngine, evidence: string): Promise<Float32Array> =>
  (await engine.vector({ organizationId: "a", evidence }, never)).vector

test("vectors have length one, and like texts are nearer than unlike ones", async () => {
  const engine = await start()
  const late = await vectorOf(engine, "My parcel is a week late and I want my money back.")
  const parcel = await vectorOf(engine, "The package did not arrive in time, please refund me.")
  const sun = await vectorOf(engine, "The sun shines over Lisbon today.")
  expect(late).toHaveLength(3 * 384)
  expect(product(late, late)).toBeCloseTo(1, 5)
  expect(product(late, parcel)).toBeGreaterThan(product(late, sun))
})

test("a reading has the vector of the evidence and the version of the model, and leaves the margins as they are", async () => {
  const engine = await start()
  for (const evidence of ["Late again.", "late ".repeat(400)]) {
    const work = { organizationId: "a", evidence, branches: [predicate("Is it late?")] }
    const plain = await engine.score(work, freely())
    const read = await engine.score({ ...work, reading: { vector: true } }, freely())
    expect(read.margins[0]).toBeCloseTo(plain.margins[0] ?? Number.NaN, 4)
    const vector = await vectorOf(engine, evidence)
    const start = (2 * vector.length) / 3
    const middle = read.reading?.vector?.subarray(start) ?? new Float32Array()
    expect(product(middle, vector.subarray(start))).toBeCloseTo(1 / 3, 4)
    const choice = { kind: "choice", question: "What is it?", value: "late", description: "" } as const
    const chosen = await engine.score({ ...work, branches: [choice], reading: { vector: true } }, freely())
    expect(product(chosen.reading?.vector ?? new Float32Array(), vector)).toBeCloseTo(1, 4)
    expect(read.reading?.modelVersion).toMatch(/.+\/.+\/[0-9a-f]{16}$/)
    expect(plain.reading).toBeUndefined()
  }
})

test("a vector is the same beside others in one run as alone", async () => {
  const engine = await start()
  const texts = [
    "Refund.",
    "The sun shines over Lisbon today.",
    "My parcel is a week late and I want my money back.",
  ]
  const beside = await Promise.all(texts.map(async (text) => await vectorOf(engine, text)))
  for (const [at, text] of texts.entries()) {
    const alone = await vectorOf(engine, text)
    expect(product(alone, beside[at] ?? new Float32Array())).toBeCloseTo(1, 3)
  }
})

/** Where the library reports to its vendor, it begins by opening a log in the folder of temporary files. */
test("nothing is reported to the vendor of the library", async () => {
  const folder = await mkdtemp(join(tmpdir(), "umpire-encoder-"))
  try {
    vi.stubEnv("TMPDIR", folder)
    // The library holds back on machines of continuous integration by itself.
    vi.stubEnv("CI", undefined)
    const engine = await start()
    await score(engine)
    expect(await readdir(folder)).toEqual([])
  } finally {
    vi.unstubAllEnvs()
    await rm(folder, { recursive: true })
  }
})
