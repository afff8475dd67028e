/** The kill test in full. */
import { killSuite } from "./analytics-kill.ts"

killSuite(50)
