/**
 * `npm run abuse [-- part of a name]`: attacks by one organization's key, and what another organization sees of each.
 *
 * The stall is the longest that /healthz took. Wanted on two cores: at most 250 ms, and the other's p99 at most three
 * times what it is alone.
 */
import { once } from "node:events"
import { join } from "node:path"
import { setTimeout as wait } from "node:timers/promises"
import { Worker } from "node:worker_threads"
import { secondKey } from "../second-key.ts"
import { startServer } from "../../test/server.ts"
import { attacks } from "./attacks.ts"
import type { Observed } from "./observer.ts"

const stallMsMax = 250
const ratioMax = 3
const aloneMs = 10_000
const settleMs = 1_000
/** An attack that is refused at once is repeated for this long, so that percentiles mean something. */
const attackMsMin = 5_000

const chosen = process.argv.slice(2)
const running = attacks.filter(
  ({ name }) => chosen.length === 0 || chosen.some((part) => name.includes(part)),
)

const server = await startServer({
  env: { UMPIRE_LIMITS_REQUESTS_PER_MINUTE: "1000000", UMPIRE_LIMITS_BURST: "1000000" },
})
const observer = new Worker(join(import.meta.dirname, "observer.ts"), {
  workerData: { url: server.url, key: await secondKey(server) },
})

async function observe(act: () => Promise<string>): Promise<Observed & { readonly outcome: string }> {
  await wait(settleMs)
  await take()
  const outcome = await act()
  return { ...(await take()), outcome }
}

async function take(): Promise<Observed> {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker thread has no origin
  observer.postMessage(null)
  const [observed] = (await once(observer, "message")) as [Observed]
  return observed
}

function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}

try {
  // Models are loaded and code is compiled before anything is measured.
  await observe(async () => {
    await wait(aloneMs / 2)
    return ""
  })
  const alone = await observe(async () => {
    await wait(aloneMs)
    return ""
  })
  const aloneP99 = percentile(alone.decisionMs, 0.99)
  console.log(
    `alone: /healthz at most ${Math.max(...alone.healthMs).toFixed(0)} ms, decisions p99 ${aloneP99.toFixed(0)} ms\n`,
  )
  console.log(
    "| attack | outcome | stall ms | the other's p99 ms | times alone | |\n| --- | --- | --- | --- | --- | --- |",
  )
  let over = 0
  for (const attack of running) {
    const body = attack.body?.() ?? ""
    const { outcome, healthMs, decisionMs, failures } = await observe(async () => {
      const endMs = performance.now() + attackMsMin
      let last = ""
      do last = await attack.run(server, body).catch(String)
      while (performance.now() < endMs)
      return last
    })
    const stall = Math.max(...healthMs)
    const p99 = percentile(decisionMs, 0.99)
    const isOver = stall > stallMsMax || !(p99 <= aloneP99 * ratioMax) || failures.length > 0
    if (isOver) over++
    const notes = [...(isOver ? ["OVER"] : []), ...new Set(failures)].join("; ")
    console.log(
      `| ${attack.name} | ${outcome} | ${stall.toFixed(0)} | ${p99.toFixed(0)} | ${(p99 / aloneP99).toFixed(1)} | ${notes} |`,
    )
  }
  console.log(`\n${running.length - over} of ${running.length} within bounds`)
} finally {
  await observer.terminate()
  await server.stop()
}
