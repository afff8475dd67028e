/** What a taught question costs beside the same question zero-shot: processor time of one run of the encoder on one thread. */
import { openGraph } from "../src/engine/encoder/graph-sessions.ts"
import { readEncoderFile } from "../src/engine/encoder/read-model-file.ts"
import { seededRandom } from "../src/scoring/teach/random.ts"

const repeats = 20
const branchTokens = 12
const evidenceTokens = [45, 160, 240] as const
/** Ids of whole words begin about here. */
const firstWord = 2000
const words = 18_000

interface Cost {
  readonly tokens: number
  readonly zeroShotMs: number
  readonly taughtMs: number
}

/** Of a yes/no question; a choice has its evidence's whole vector made anyway. */
export async function measureCost(modelFile: string): Promise<Cost[]> {
  const { description } = await readEncoderFile(modelFile)
  const graph = await openGraph(description, { modelFile, threads: 1 })
  const random = seededRandom(1)
  const tokens = (length: number): Int32Array =>
    Int32Array.from({ length }, () => firstWord + Math.floor(random() * words))
  const run = async (count: number, pooling: "none" | "middle"): Promise<number> => {
    const row = {
      evidence: tokens(count),
      questions: [{ stem: tokens(0), branches: [tokens(branchTokens)] }],
      pooling,
    }
    const before = process.cpuUsage()
    await graph.scoreRows([row])
    const { user, system } = process.cpuUsage(before)
    return (user + system) / 1000
  }
  const costs: Cost[] = []
  for (const count of evidenceTokens) {
    const [zeroShot, taught]: [number[], number[]] = [[], []]
    await run(count, "middle")
    // In turn, so that what else the machine does falls on both.
    for (let repeat = 0; repeat < repeats; repeat++) {
      zeroShot.push(await run(count, "none"))
      taught.push(await run(count, "middle"))
    }
    costs.push({ tokens: count, zeroShotMs: median(zeroShot), taughtMs: median(taught) })
  }
  await graph.close()
  return costs
}

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN
