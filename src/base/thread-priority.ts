/** Lets other threads of the process go first when there are fewer cores than work. */
import { readFileSync, readdirSync } from "node:fs"
import { getPriority, setPriority } from "node:os"

const BACKGROUND_NICENESS = 10

/** For threads that do large work of one caller. Only on Linux is a priority the thread's own, not the process's. */
export function lowerThreadPriority(): void {
  if (process.platform !== "linux") return
  // A server that was started with a lower priority keeps it: raising one is refused, or needs a privilege.
  if (getPriority() < BACKGROUND_NICENESS) setPriority(BACKGROUND_NICENESS)
}

/**
 * For V8's helper threads, which collect garbage beside the main thread. Large bodies are memory that V8 does not own, and a flood of
 * them makes it collect several times a second: more processor time than reading them takes, and the engines' loss.
 */
export function lowerCollectorPriority(): void {
  if (process.platform !== "linux" || getPriority() >= BACKGROUND_NICENESS) return
  try {
    for (const thread of readdirSync("/proc/self/task")) {
      // Node names the threads of its pool since version 23.
      const name = readFileSync(`/proc/self/task/${thread}/comm`, "utf8").trim()
      if (name === "V8Worker") setPriority(Number(thread), BACKGROUND_NICENESS)
    }
  } catch {
    // A thread has ended meanwhile, or the system does not allow it: everything works without.
  }
}
