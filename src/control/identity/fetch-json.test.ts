import { afterEach, expect, test } from "vitest"
import { type JsonFetcher, createJsonFetcher, isPrivate } from "./fetch-json.ts"

let fetcher: JsonFetcher | undefined
afterEach(async () => await fetcher?.close())

test.each([
  ["127.0.0.1", true],
  ["127.255.255.254", true],
  ["10.0.0.1", true],
  ["172.15.255.255", false],
  ["172.16.0.1", true],
  ["172.31.255.255", true],
  ["172.32.0.0", false],
  ["192.168.1.1", true],
  ["169.254.169.254", true],
  ["100.64.0.1", true],
  ["0.0.0.0", true],
  ["224.0.0.1", true],
  ["255.255.255.255", true],
  ["8.8.8.8", false],
  ["1.1.1.1", false],
  ["::1", true],
  ["::", true],
  ["::ffff:127.0.0.1", true],
  ["::ffff:10.0.0.1", true],
  ["::ffff:8.8.8.8", false],
  ["64:ff9b::7f00:1", true],
  ["2002:7f00:1::", true],
  ["fd00::1", true],
  ["fe80::1", true],
  ["ff02::1", true],
  ["2606:4700:4700::1111", false],
])("%s is private: %s", (address, expected) => {
  expect(isPrivate(address)).toBe(expected)
})

test.each([
  ["a number", "https://127.0.0.1:1/jwks"],
  ["a number in disguise", "https://2130706433:1/jwks"],
  ["octal", "https://0177.0.0.1:1/jwks"],
  ["IPv6", "https://[::1]:1/jwks"],
  ["IPv4 in IPv6", "https://[::ffff:127.0.0.1]:1/jwks"],
  ["the metadata service", "https://169.254.169.254/latest"],
])("a private address is not connected to: %s", async (_, address) => {
  fetcher = createJsonFetcher({ allowPrivate: false })
  await expect(fetcher.fetch(address)).rejects.toThrow("at a private address")
})

test("a name that resolves to a private address is refused when it is connected to", async () => {
  fetcher = createJsonFetcher({ allowPrivate: false })
  await expect(fetcher.fetch("https://localhost:1/jwks")).rejects.toThrow("at a private address")
})

test.each(["http://example.com/jwks", "ftp://example.com", "https://user:secret@example.com/", "nonsense"])(
  "%s is not asked",
  async (address) => {
    fetcher = createJsonFetcher({ allowPrivate: true })
    await expect(fetcher.fetch(address)).rejects.toThrow("not at an HTTPS address")
  },
)
