/** Every engine answers what the reference answers; the short form. */
import { equalitySuite } from "./analytics-equality.ts"

// An emulated chDB answers a few questions a minute: the variables make the comparison as small as is needed.
equalitySuite({
  events: Number(process.env["UMPIRE_TEST_EVENTS"] ?? 10_000),
  questions: Number(process.env["UMPIRE_TEST_QUESTIONS"] ?? 20),
})
