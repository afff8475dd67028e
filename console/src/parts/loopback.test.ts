import { expect, test } from "vitest"
import { isLoopback } from "./loopback.ts"

test.each(["localhost", "umpire.localhost", "127.0.0.1", "127.1.2.3", "0.0.0.0", "[::1]", "[::]"])(
  "%s is reached from this machine only",
  (host) => expect(isLoopback(host)).toBe(true),
)

test.each([
  "umpire.example.com",
  "localhost.example.com",
  "10.0.0.1",
  "128.0.0.1",
  "[fe80::1]",
  "notlocalhost",
])("%s may be reached from elsewhere", (host) => expect(isLoopback(host)).toBe(false))
