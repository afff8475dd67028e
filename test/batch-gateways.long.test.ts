import { test } from "vitest"
import { killBothGateways } from "./batch-kill.ts"

test(
  "10,000 lines over two gateways that are both killed have a result and one charge each",
  { timeout: 900_000 },
  async () => {
    await killBothGateways(10_000, 800_000)
  },
)
