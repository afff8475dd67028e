/** The short form of the kill test: the third life loses its analytics process first. */
import { killSuite } from "./analytics-kill.ts"

killSuite(3)
