import { afterEach, expect, test } from "vitest"
import { type JsonFetcher, createJsonFetcher } from "./fetch-json.ts"

let fetcher: JsonFetcher | undefined
afterEach(async () => await fetcher?.close())

test.each([
  ["a number", "https://127.0.0.1:1/jwks"],
  ["a number in disguise", "https://2130706433:1/jwks"],
  ["octal", "https://0177.0.0.1:1/jwks"],
  ["IPv6", "https://[::1]:1/jwks"],
  ["IPv4 in IPv6", "https://[::ffff:127.0.0.1]:1/jwks"],
  ["the metadata service", "https://169.254.169.254/latest"],
])("a private address is not connected to: %s", async (_, address) => {
  fetcher = createJsonFetcher({ allowPrivate: false, timeoutMs: 600_000 })
  await expect(fetcher.fetch(address)).rejects.toThrow("at a private address")
})

test("a name that resolves to a private address is refused when it is connected to", async () => {
  // Refused for its address, not for the time that a busy machine takes to look it up.
  fetcher = createJsonFetcher({ allowPrivate: false, timeoutMs: 600_000 })
  await expect(fetcher.fetch("https://localhost:1/jwks")).rejects.toThrow("at a private address")
})

test.each(["http://example.com/jwks", "ftp://example.com", "https://user:secret@example.com/", "nonsense"])(
  "%s is not asked",
  async (address) => {
    fetcher = createJsonFetcher({ allowPrivate: true })
    await expect(fetcher.fetch(address)).rejects.toThrow("not at an HTTPS address")
  },
)
