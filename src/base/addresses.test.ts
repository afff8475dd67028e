import { expect, test } from "vitest"
import { clientAddress, isTrustedPeer, networkOf, noProxies, parseTrustedProxies } from "./addresses.ts"

const trusted = (text: string) => parseTrustedProxies(text) ?? expect.fail(`${text} is not understood`)

test.each([
  ["nothing is trusted", "", "10.0.0.1", "1.2.3.4", "10.0.0.1"],
  ["one hop, one entry", "1", "10.0.0.1", "1.2.3.4", "1.2.3.4"],
  ["a forged entry on the left of one hop", "1", "10.0.0.1", "6.6.6.6, 1.2.3.4", "1.2.3.4"],
  ["two hops", "2", "10.0.0.1", "6.6.6.6, 1.2.3.4, 10.0.0.2", "1.2.3.4"],
  ["fewer entries than hops", "3", "10.0.0.1", "1.2.3.4", "1.2.3.4"],
  ["no header", "1", "10.0.0.1", undefined, "10.0.0.1"],
  ["an entry that is no address", "1", "10.0.0.1", "unknown", "10.0.0.1"],
  ["a network, from inside it", "10.0.0.0/8", "10.0.0.1", "6.6.6.6, 1.2.3.4", "1.2.3.4"],
  ["a network, from outside it", "10.0.0.0/8", "1.2.3.4", "6.6.6.6", "1.2.3.4"],
  [
    "a chain of trusted proxies",
    "10.0.0.0/8,192.0.2.7",
    "10.0.0.1",
    "6.6.6.6, 1.2.3.4, 192.0.2.7",
    "1.2.3.4",
  ],
  ["only trusted addresses", "10.0.0.0/8", "10.0.0.1", "10.0.0.3, 10.0.0.2", "10.0.0.3"],
  ["IPv4 in IPv6", "127.0.0.1", "::ffff:127.0.0.1", "1.2.3.4:5678", "1.2.3.4"],
  ["IPv6 with brackets and port", "::1", "::1", "[2001:DB8::5]:443", "2001:db8::5"],
])("%s", (_, setting, peer, forwarded, expected) => {
  expect(clientAddress(peer, forwarded, trusted(setting))).toBe(expected)
})

test.each(["x", "17", "10.0.0.0/33", "10.0.0", "10.0.0.0/8/8", "10.0.0.0/8,", "::/129", "-1"])(
  "%s is neither hops nor networks",
  (text) => {
    expect(parseTrustedProxies(text)).toBeNull()
  },
)

test("sixteen hops and whole networks are understood", () => {
  expect(trusted("16").hops).toBe(16)
  expect(isTrustedPeer("203.0.113.9", trusted("0.0.0.0/0"))).toBe(true)
  expect(isTrustedPeer("203.0.113.9", noProxies)).toBe(false)
})

test("an IPv6 client is counted by its /64, an IPv4 client by its address", () => {
  expect(networkOf("2001:db8:0:1::5")).toBe(networkOf("2001:db8:0:1:ffff:1:2:3"))
  expect(networkOf("2001:db8:0:1::5")).not.toBe(networkOf("2001:db8:0:2::5"))
  expect(networkOf("::1")).toBe(networkOf("0:0:0:0:0:0:0:1"))
  expect(networkOf("1.2.3.4")).toBe("1.2.3.4")
})
