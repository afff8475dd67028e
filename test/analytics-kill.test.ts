/** The short form of the kill test. */
import { killSuite } from "./analytics-kill.ts"

killSuite(5)
