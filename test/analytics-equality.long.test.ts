/** Every engine answers what the reference answers; all of it. */
import { equalitySuite } from "./analytics-equality.ts"

equalitySuite({ events: 10_000, questions: 2_000 })
