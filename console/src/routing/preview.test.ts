import { expect, test } from "vitest"
import { previewRoute } from "./preview.ts"

const region = (id: string, country: string, longitude: number, models: string[], home = false) => ({
  id,
  country,
  latitude: 50,
  longitude,
  models,
  home,
})
const regions = [
  region("paris", "FR", 2, ["m"], true),
  region("oslo", "NO", 11, ["m"]),
  region("lyon", "FR", 5, ["m"]),
  region("empty", "FR", 3, []),
]

test("the preview is the gateway's plan: nearest first, only where the model runs", () => {
  const policy = { mode: "nearest", fallback: "visible_regions", regions: [] } as const
  expect(previewRoute({ ...policy, regions: [] }, regions, "m")).toEqual({ tries: ["paris", "lyon", "oslo"] })
})

test("a policy that leaves no region is refused in the gateway's words", () => {
  const preview = previewRoute({ mode: "required", fallback: "disabled", regions: ["empty"] }, regions, "m")
  expect(preview).toEqual({ refused: expect.stringContaining("Cannot route") as string })
})
