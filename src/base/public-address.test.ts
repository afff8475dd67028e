import { expect, test } from "vitest"
import { isPrivate } from "./addresses.ts"

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
  ["::127.0.0.1", true],
  ["::ffff:ffff", true],
  ["::1:0:0", false],
  ["::ffff:0:127.0.0.1", true],
  ["::ffff:0:ffff:ffff", true],
  ["::ffff:1:0:0", false],
  ["64:ff9b::7f00:1", true],
  ["2002:7f00:1::", true],
  ["fd00::1", true],
  ["fe80::1", true],
  ["ff02::1", true],
  ["2606:4700:4700::1111", false],
])("%s is private: %s", (address, expected) => {
  expect(isPrivate(address)).toBe(expected)
})
