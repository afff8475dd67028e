/** The package that speaks HTTP to others, which a server needs when it first does. */
import { createRequire } from "node:module"
import type * as Undici from "undici"
import { later } from "./memo.ts"

export const undici = later((): typeof Undici => createRequire(import.meta.url)("undici"))
