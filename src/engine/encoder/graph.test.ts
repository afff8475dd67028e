import { type InferenceSession, Tensor } from "onnxruntime-common"
import { expect, test } from "vitest"
import { nextTurn } from "../../base/turns.ts"
import { type GraphRow, createGraph } from "./graph.ts"

const description = {
  version: 4 as const,
  name: "two parts",
  quantization: "none",
  parameterCount: 1,
  contextTokensMax: 512,
  layers: 2,
  heads: 1,
  headSize: 4,
  evidencePositions: 512,
  branchPositions: 64,
  blockTokensMax: 512,
  similarityCentre: 0,
  recalledWeight: 0,
  calibration: {
    predicate: { temperature: 1, bias: 0 },
    choice: { temperature: 1, bias: 0 },
    score: { temperature: 1, bias: 0 },
  },
}
const inputs = [
  "ids",
  "positions",
  "group",
  "parent",
  "ends",
  ...[0, 1].flatMap((layer) => [`past_keys.${layer}`, `past_values.${layer}`]),
]
const scores = ["margins", "hidden", "similarity"]
const shortTokens = 8

/** Each part notes its run. As ONNX Runtime for Node, it works in a later turn of the event loop, and others have theirs before. */
function partsThatNote(runs: string[], noted: () => void) {
  const part = (layer: number, isLast: boolean) => ({
    inputs,
    outputs: [`keys.${layer}`, `values.${layer}`, ...(isLast ? scores : ["between"])],
    passedOn: isLast ? [] : ["between"],
    // The graph calls nothing else of a session.
    session: {
      run: async (feeds: Record<string, Tensor>) => {
        const tokens = feeds["ids"]?.size ?? 0
        await new Promise<void>((resolve) => void setImmediate(resolve))
        runs.push(`${tokens > shortTokens ? "long" : "short"} ${layer + 1}`)
        noted()
        const one = new Tensor("float32", new Float32Array(1), [1])
        return Object.fromEntries((isLast ? scores : ["between"]).map((name) => [name, one]))
      },
    } as unknown as InferenceSession,
  })
  return [part(0, false), part(1, true)]
}

const rowOf = (tokens: number): GraphRow => ({
  evidence: new Int32Array(tokens),
  questions: [],
  pooling: "none",
})

/** Asks for a short run once, in the turn after the first part of the long one. */
function askedOnce(ask: () => Promise<unknown>): { readonly noted: () => void; answer(): Promise<unknown> } {
  let answer: Promise<unknown> | undefined
  return { noted: () => void (answer ??= nextTurn().then(ask)), answer: async () => await answer }
}

test("a short run passes a long one between its parts, with all of its own", async () => {
  const runs: string[] = []
  const short = askedOnce(async () => await graph.scoreRows([rowOf(4)]))
  const graph = createGraph(partsThatNote(runs, short.noted), description, shortTokens)
  await graph.scoreRows([rowOf(16)])
  await short.answer()
  expect(runs).toEqual(["long 1", "short 1", "short 2", "long 2"])
})

test("a short run that fails keeps a long one waiting no longer", async () => {
  const runs: string[] = []
  const short = askedOnce(async () => await graph.scoreRows([rowOf(4)]).catch(String))
  const failing = partsThatNote(runs, () => {
    short.noted()
    if (runs.at(-1) === "short 1") throw new Error("The run fails")
  })
  const graph = createGraph(failing, description, shortTokens)
  await graph.scoreRows([rowOf(16)])
  expect(await short.answer()).toContain("The run fails")
  expect(runs).toEqual(["long 1", "short 1", "long 2"])
})
