/** The attacks on every endpoint with bodies of a mebibyte. */
import { abuseTests } from "./abuse.ts"

abuseTests(1024 * 1024)
