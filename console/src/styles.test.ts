import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"

test("the font of the console is Inter, from files that the installation brings", () => {
  const styles = readFileSync(join(import.meta.dirname, "styles.css"), "utf8")
  expect(/--font-sans:\s*"([^"]+)"/.exec(styles)?.[1]).toBe("Inter Variable")
  const files = [...styles.matchAll(/url\("([^"]+)"\)/g)].map(([, file = ""]) => file)
  expect(files.length).toBeGreaterThan(0)
  expect(files.filter((file) => !existsSync(join(import.meta.dirname, file)))).toEqual([])
})
