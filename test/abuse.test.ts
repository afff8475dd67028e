/** The short form of the attacks (`npm run abuse`): each endpoint once, with bodies of a mebibyte. */
import { abuseTests } from "./abuse.ts"

abuseTests(1024 * 1024)
