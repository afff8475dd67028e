/** Lets other threads of the process go first when there are fewer cores than work. */
import { setPriority } from "node:os"

const BACKGROUND_NICENESS = 10

/** For threads that do large work of one caller. Only on Linux is a priority the thread's own, not the process's. */
export function lowerThreadPriority(): void {
  if (process.platform === "linux") setPriority(BACKGROUND_NICENESS)
}
