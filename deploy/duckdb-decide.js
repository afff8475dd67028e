/**
 * Decisions from inside DuckDB's SQL, in Node: registerUmpire(connection, { url, key }) adds functions that ask an Umpire
 * server about a text. See docs/tables.md. DuckDB's own build has no HTTP client, so a thread of Node asks; rows that DuckDB
 * hands over together, up to 2,048, are asked several at once.
 */
import { createHash } from "node:crypto"
import { setTimeout as wait } from "node:timers/promises"
import {
  MessageChannel,
  Worker,
  isMainThread,
  parentPort,
  receiveMessageOnPort,
  workerData,
} from "node:worker_threads"

/**
 * The pauses between them are 142 seconds together: longer than a first attempt runs on at the server, which answers its
 * repetitions with 409 until it ends.
 */
const attemptsMax = 20
/**
 * Of connections that cannot be opened, over 3 seconds where they are refused, to an address that has not answered yet: it is
 * wrong, or nothing runs there. One that has answered is away for a while.
 */
const unreachableMax = 5
/** Of connections that were open. Any other failure, of TLS too, means that none could be opened. */
const interruptedCodes = [
  "ECONNRESET",
  "EPIPE",
  "UND_ERR_SOCKET",
  "UND_ERR_HEADERS_TIMEOUT",
  "UND_ERR_BODY_TIMEOUT",
  "TimeoutError",
]
const pauseMsMax = 10_000
const retryAfterMsMax = 60_000
const timeoutMs = 60_000
const passing = [409, 429, 502, 503, 504]
const concurrencyDefault = 16
const concurrencyMax = 256
/** The calling thread waits for the other in slices, in which the other shows that it is alive. */
const sliceMs = 1_000
const silentSlicesMax = 30
const slicesMax = 3_600
/** Where in the shared memory the threads write: 1 when there is a reply, and how often the asking thread has shown itself. */
const replied = 0
const beats = 1

const macros = [
  `CREATE OR REPLACE MACRO umpire_yes_no(input, question, model := 'umpire-decide') AS CAST(umpire_decide(input,
     json_array(json_object('type', 'predicate', 'instructions', question)), model)->'$[0].probability' AS DOUBLE)`,
  `CREATE OR REPLACE MACRO umpire_choice(input, question, options, model := 'umpire-decide') AS umpire_decide(input,
     json_array(json_object('type', 'choice', 'instructions', question,
       'choices', list_transform(options, lambda one: {'value': one}))), model)->>'$[0].choice'`,
]

/**
 * Until `close`, the thread keeps the process alive; after it the functions fail. While a query asks, the event loop of the
 * calling thread stands still. Another `run` asks anew what was answered before.
 */
export async function registerUmpire(connection, { url, key, run = "", concurrency = concurrencyDefault }) {
  const settings = { address: addressOf(url), key: keyOf(key), run, concurrency }
  if (!Number.isInteger(concurrency) || concurrency < 1 || concurrency > concurrencyMax)
    throw new Error(`Cannot ask Umpire: concurrency must be from 1 to ${concurrencyMax}`)
  const { DuckDBScalarFunction, VARCHAR } = await import("@duckdb/node-api")
  const asker = await startAsker(settings)
  const decideFunction = DuckDBScalarFunction.create({
    name: "umpire_decide",
    parameterTypes: [VARCHAR, VARCHAR, VARCHAR],
    returnType: VARCHAR,
    specialHandling: true,
    volatile: true,
    mainFunction: (info, input, output) => {
      const { answers, error } = asker.ask(input.getRows())
      if (error !== undefined) return info.setError(error)
      for (const [row, answer] of answers.entries()) output.setItem(row, answer)
      output.flush()
    },
  })
  try {
    connection.registerScalarFunction(decideFunction)
    for (const macro of macros) await connection.run(macro)
  } catch (error) {
    await asker.close()
    throw error
  }
  return { close: asker.close }
}

function addressOf(url) {
  const address = new URL(`${String(url).replace(/\/+$/, "")}/v1/decisions`)
  if (!["http:", "https:"].includes(address.protocol) || address.username !== "" || address.password !== "")
    throw new Error("Cannot ask Umpire: url must begin with http:// or https:// and name no user")
  return address.href
}

function keyOf(key) {
  const trimmed = String(key ?? "").trim()
  if (!/^[!-~]+$/.test(trimmed))
    throw new Error("Cannot ask Umpire: key must be of ASCII letters, digits and signs, without spaces")
  return trimmed
}

/** Starts the thread; `ask` waits for its reply, and never for one that cannot come. */
async function startAsker(settings) {
  const { port1: port, port2: theirs } = new MessageChannel()
  const signal = new Int32Array(new SharedArrayBuffer(8))
  const worker = new Worker(new URL(import.meta.url), {
    workerData: { umpire: { ...settings, port: theirs, signal } },
    transferList: [theirs],
  })
  let ended
  const end = (reason) => {
    ended ??= `Umpire was not asked: ${reason}`
    return worker.terminate()
  }
  await new Promise((resolve, reject) => {
    const fail = () => {
      void end("the thread that asks has ended; register the functions again")
      reject(new Error(ended))
    }
    worker.once("message", resolve).on("error", fail).on("exit", fail)
  })

  const ask = (rows) => {
    if (ended !== undefined) return { error: ended }
    Atomics.store(signal, replied, 0)
    port.postMessage(rows)
    let seen = Atomics.load(signal, beats)
    for (let slices = 0, silent = 0; Atomics.wait(signal, replied, 0, sliceMs) === "timed-out"; slices++) {
      const now = Atomics.load(signal, beats)
      silent = now === seen ? silent + 1 : 0
      seen = now
      if (silent < silentSlicesMax && slices < slicesMax) continue
      // A late reply would be taken for that of the next rows.
      void end("the thread that asks gave no reply; register the functions again")
      return { error: ended }
    }
    return receiveMessageOnPort(port)?.message ?? { error: "Umpire was not asked: the reply was lost" }
  }
  return { ask, close: async () => void (await end("the functions were closed")) }
}

if (!isMainThread && workerData?.umpire) {
  const { port, signal, ...settings } = workerData.umpire
  setInterval(() => Atomics.add(signal, beats, 1), sliceMs / 2)
  port.on("message", async (rows) => {
    try {
      port.postMessage(await decideAll(settings, rows))
    } catch {
      port.postMessage({ error: "Umpire was not asked: the thread that asks has failed" })
    } finally {
      Atomics.store(signal, replied, 1)
      Atomics.notify(signal, replied)
    }
  })
  parentPort.postMessage("ready", [])
}

/** The first failure ends the query, so nothing more is asked after it. */
async function decideAll(settings, rows) {
  const answers = []
  let error
  let next = 0
  const work = async () => {
    while (next < rows.length && error === undefined) {
      const at = next++
      const decided = await decide(settings, rows[at])
      answers[at] = decided.answer
      error ??= decided.error
    }
  }
  await Promise.all(Array.from({ length: settings.concurrency }, work))
  return error === undefined ? { answers } : { error }
}

/** In the thread that asks: it asks one address. */
let hasAnswered = false

/** Never throws: a failure is told where the query is. */
async function decide({ address, key, run }, [input, questions, model]) {
  // There is nothing to ask about.
  if (input === null || questions === null || model === null || input.trim() === "") return { answer: null }
  const asked = parse(questions)
  if (asked === undefined) return { error: "Umpire was not asked: the questions are not JSON" }
  const body = JSON.stringify({ model, input, questions: asked })
  const headers = {
    authorization: `Bearer ${key}`,
    "content-type": "application/json",
    // For 24 hours a query that is repeated in one run is answered from what was answered before, and charged once.
    "idempotency-key": `sql-${createHash("sha256")
      .update(JSON.stringify([run, body]))
      .digest("hex")}`,
  }
  for (let attempt = 1, unreachable = 0; ; attempt++) {
    const { failure, status, retryAfter, text } = await post(address, headers, body)
    if (failure === undefined) hasAnswered = true
    const isUnreachable = failure !== undefined && !interruptedCodes.includes(failure)
    if (isUnreachable) unreachable++
    const isPassing = failure !== undefined || passing.includes(status)
    if (!isPassing || attempt === attemptsMax || (unreachable === unreachableMax && !hasAnswered)) {
      if (isUnreachable) return { error: `Cannot reach Umpire in ${attempt} attempts: ${failure}` }
      if (failure !== undefined) return { error: `Umpire does not answer: ${failure}` }
      const found = parse(text)
      if (status === 200 && Array.isArray(found?.answers)) return { answer: JSON.stringify(found.answers) }
      return { error: `Umpire answered ${status}: ${found?.error?.message ?? "no reason"}` }
    }
    const retryAfterMs = /^\d{1,9}$/.test(retryAfter ?? "") ? Number(retryAfter) * 1_000 : 0
    await wait(Math.max(Math.min(100 * 2 ** attempt, pauseMsMax), Math.min(retryAfterMs, retryAfterMsMax)))
  }
}

async function post(address, headers, body) {
  try {
    const signal = AbortSignal.timeout(timeoutMs)
    const response = await fetch(address, { method: "POST", headers, body, signal })
    const retryAfter = response.headers.get("retry-after")
    return { status: response.status, retryAfter, text: await response.text() }
  } catch (error) {
    // Never the message: it may quote a header, and the key is in one.
    return { failure: error.cause?.code ?? error.name }
  }
}

function parse(text) {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
