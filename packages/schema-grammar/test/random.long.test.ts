/** Many random schemas: whatever is written for one is accepted by it. */
import { expect, test } from "vitest"
import { checkRandomSchemas } from "./properties.ts"

const schemasCount = 20_000
const minuteMs = 60_000

test(
  `every text written for ${schemasCount} random schemas is accepted by ajv`,
  () => {
    const { compiled, refused, texts, endless } = checkRandomSchemas(schemasCount, 2026)
    process.stdout.write(
      `${compiled} compiled, ${refused} refused, ${endless} endless for ajv, ${texts} texts, all valid\n`,
    )
    expect(compiled + refused).toBe(schemasCount)
    expect(compiled).toBeGreaterThan(schemasCount / 2)
  },
  60 * minuteMs,
)
