/** The thread that decodes large bodies, so that the others are answered meanwhile. */
import { answerJobs } from "../../base/thread-entry.ts"
import { type DecodeJob, type Decoded, decodeBody } from "./decode.ts"

answerJobs((job: DecodeJob): Decoded => {
  const { branches: _, ...decoded } = decodeBody(job)
  return decoded
})
