/** `npm run bench [-- name ...]`: runs the benchmarks, each in a process of its own so that none disturbs another. */
import { spawnSync } from "node:child_process"
import { existsSync } from "node:fs"
import { join } from "node:path"

/** Each measures the product beside what a user would pick instead and beside the physical limit, in one run. */
const benches = {
  encoder: "decisions through the encoder, the language model and llama-server",
  stream:
    "small decisions one after the other through both encoders: decisions a second and processor time of each",
  gateway:
    "decisions against an engine that answers at once, beside Fastify and node:http: latency, memory, stalls",
  metering: "decisions a second with metering and without, embedded and on PostgreSQL",
  generate: "local generation beside node-llama-cpp used directly: first token and tokens a second",
  proxy:
    "a remote worker through Umpire, a plain pass-through and Portkey's gateway: latency and requests a second",
  identity: "token exchanges a second and their latency, for OIDC tokens and client certificates",
  analytics: "events: their ingest, their size, and a dashboard's questions beside hand-written statements",
  "analytics-beside-decisions": "the latency of decisions alone and while dashboards ask without a pause",
  "batch-beside-live": "the latency of live decisions alone and while a batch runs",
  "request-log": "the first page of the request log for every filter, and decisions beside it",
  cluster:
    "what several gateways ask of one PostgreSQL: writes a decision, usage taken, events shared, files",
  overload: "ten times the load that the machine can do: throughput, latency, memory, and who is served",
  languages: "kept-back texts in sixteen languages: yes/no, choices and scales beside English, by model",
  teach: "accuracy and calibration error by labels, zero-shot and taught, and promises kept on unseen rows",
  distil:
    "what a small model learns from a large one that is sometimes wrong: accuracy, promises, cost, beside people's labels alone",
  "label-next":
    "labels chosen by several criteria beside labels chosen at random: how many reach the same accuracy",
  cascade: "a cascade beside its members: accuracy, share escalated, cost and latency at several thresholds",
  guardrails: "what guardrails add to the first text and the whole of a streamed answer",
  tracing: "decisions a second with every trace exported and without",
  jevbench:
    "fifty laws of coherence between forms of one question: the public harness against a started server",
  console: "the console's first pages: until they are usable, and their bytes",
} as const

const chosen = process.argv.slice(2).filter((argument) => !argument.startsWith("-"))
const flags = process.argv.slice(2).filter((argument) => argument.startsWith("-"))
const names = chosen.length > 0 ? chosen : Object.keys(benches)

for (const name of names) {
  const file = join(import.meta.dirname, `${name}.ts`)
  if (!Object.hasOwn(benches, name) || !existsSync(file)) {
    console.error(`No benchmark ${name}; there are ${Object.keys(benches).join(", ")}`)
    process.exit(2)
  }
  console.log(`\n== ${name}: ${benches[name as keyof typeof benches]}\n`)
  const { status } = spawnSync(process.execPath, [file, ...flags], { stdio: "inherit" })
  if (status !== 0) process.exit(status ?? 1)
}
