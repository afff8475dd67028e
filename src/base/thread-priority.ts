/** Lets other threads of the process go first when there are fewer cores than work. */
import { getPriority, setPriority } from "node:os"

const BACKGROUND_NICENESS = 10

/** For threads that do large work of one caller. Only on Linux is a priority the thread's own, not the process's. */
export function lowerThreadPriority(): void {
  if (process.platform !== "linux") return
  // A server that was started with a lower priority keeps it: raising one is refused, or needs a privilege.
  if (getPriority() < BACKGROUND_NICENESS) setPriority(BACKGROUND_NICENESS)
}
