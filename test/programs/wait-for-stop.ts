/** Says when it was asked to stop, and then takes the given milliseconds to do so. */
import { setTimeout as wait } from "node:timers/promises"
import { stopSignal } from "../../src/cli/run-until-stopped.ts"

const alive = setInterval(() => undefined, 1_000)
const asked = stopSignal()
console.log("ready")
console.log(await asked)
await wait(Number(process.argv[2]))
console.log("stopped")
clearInterval(alive)
