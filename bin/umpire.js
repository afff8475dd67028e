#!/usr/bin/env node
/** The `umpire` command. */
import { main } from "../src/main.ts"

process.exitCode = await main(process.argv.slice(2))
