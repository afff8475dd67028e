/** The thread that reads large bodies of the OpenAI-compatible endpoints. */
import { servePeer } from "../../base/peer/connection.ts"
import { type BodyService, readBody } from "./body.ts"

servePeer<BodyService>({ read: readBody })
