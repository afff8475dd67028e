/** The thread that reads large bodies of the OpenAI-compatible endpoints. */
import { answerJobs } from "../../base/thread-entry.ts"
import { readBody } from "./body.ts"

answerJobs(readBody)
