/** Decisions a second with every trace exported and without, on two servers that take turns. */
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { startServer, type TestServer } from "../test/server.ts"

const rounds = 10
const secondsPerRound = 4
const connections = 8

const body = {
  model: "umpire-decide",
  input: "My parcel is two weeks late. Please refund me.",
  questions: [{ type: "predicate", instructions: "Does the customer ask for a refund?" }],
}

/** Requests that one server answers in a round. */
async function round(server: TestServer, seconds: number): Promise<number> {
  const untilMs = performance.now() + seconds * 1000
  let answered = 0
  const send = async (): Promise<void> => {
    while (performance.now() < untilMs) {
      const response = await server.post("/v1/decisions", body)
      await response.arrayBuffer()
      if (response.status !== 200) throw new Error(`A decision was answered ${response.status}`)
      answered++
    }
  }
  await Promise.all(Array.from({ length: connections }, send))
  return answered / seconds
}

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN

let exports = 0
const collector = createServer((request, response) => {
  exports++
  request.resume().on("end", () => response.writeHead(200, { "content-type": "application/json" }).end("{}"))
})
await new Promise<void>((resolve) => collector.listen(0, "127.0.0.1", resolve))
// True for a TCP server that listens.
const { port } = collector.address() as AddressInfo
const limits = { UMPIRE_LIMITS_REQUESTS_PER_MINUTE: "1000000", UMPIRE_LIMITS_BURST: "1000000" }
const endpoint = { UMPIRE_TELEMETRY_OTLP_ENDPOINT: `http://127.0.0.1:${port}` }
const plain = await startServer({ env: limits })
const traced = await startServer({ env: { ...limits, ...endpoint } })
const rates: { plain: number[]; traced: number[] } = { plain: [], traced: [] }
try {
  for (const server of [plain, traced]) await round(server, 2)
  for (let index = 0; index < rounds; index++) {
    rates.plain.push(await round(plain, secondsPerRound))
    rates.traced.push(await round(traced, secondsPerRound))
  }
} finally {
  await plain.stop()
  await traced.stop()
  collector.close()
}
const [without, withTraces] = [median(rates.plain), median(rates.traced)]
const ratios = rates.plain.map((rate, index) => (rates.traced[index] ?? Number.NaN) / rate)
console.log(`without traces   ${without.toFixed(0)} requests/s (median of ${rounds} rounds)`)
console.log(`every trace      ${withTraces.toFixed(0)} requests/s, ${exports} exports`)
console.log(`cost             ${((1 - median(ratios)) * 100).toFixed(1)} % (median of the rounds' ratios)`)
