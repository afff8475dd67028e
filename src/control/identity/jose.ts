/** The package for signed tokens, which a server needs when the first one comes. */
import { createRequire } from "node:module"
import type * as Jose from "jose"
import { later } from "../../base/memo.ts"

export const jose = later((): typeof Jose => createRequire(import.meta.url)("jose"))
