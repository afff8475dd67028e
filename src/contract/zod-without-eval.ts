/** Tells zod not to compile its schemas with `eval`, which the Content-Security-Policy forbids; imported before any schema. */
import { config } from "zod"

config({ jitless: true })
