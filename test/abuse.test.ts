/** The short form of the attacks: large bodies are four times what is read on the event loop. */
import { threadBytesMin } from "../src/base/peer/threads.ts"
import { abuseTests } from "./abuse.ts"

abuseTests(4 * threadBytesMin)
