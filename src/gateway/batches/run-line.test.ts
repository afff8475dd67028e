import { expect, test } from "vitest"
import { Fault, type FaultCode } from "../../contract/errors.ts"
import { everyBatchPath } from "../../../test/every-batch-path.ts"
import { keyPrincipal, membership } from "../../../test/in-memory-gateway.ts"
import { type LineDeps, type LineRequest, type LineResult, runLine } from "./run-line.ts"

/** Runs a line that fails so often before it is answered. */
async function run(code: FaultCode, failures: number): Promise<LineResult | null> {
  let asked = 0
  const endpoint = {
    surface: "classification",
    handler: async () => {
      if (asked++ < failures) throw new Fault(code, "Cannot run the request", { retryAfterMs: 1 })
      return {}
    },
  } as const
  const deps: LineDeps = {
    callerNow: async (caller) => caller,
    endpoints: everyBatchPath(endpoint),
    errorBody: (_, fault) => ({ code: fault.code }),
    timeoutMs: 60_000,
    liveTraffic: { enterLine: async () => () => undefined },
  }
  const request: LineRequest = {
    batchId: "batch_1",
    endpoint: "/v1/decisions",
    caller: { principal: keyPrincipal, membership },
    line: { line: 0, customId: "row-0", body: "{}" },
    startedMs: 0,
    isTrial: false,
  }
  const { signal } = new AbortController()
  return await runLine(deps, request, { stop: signal, halt: signal })
}

test("a failure is tried six times, and a limit or a full worker for as long as the batch has time", async () => {
  expect(await run("inference_failed", 5)).toMatchObject({ isSuccess: true })
  expect(await run("inference_failed", 6)).toMatchObject({ isSuccess: false })
  expect(await run("rate_limited", 20)).toMatchObject({ isSuccess: true })
  expect(await run("overloaded", 20)).toMatchObject({ isSuccess: true })
})
