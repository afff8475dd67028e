/**
 * npm runs a command in a shell, and a signal to npm ends the shell, not what runs in it: the server would answer on without a parent.
 * Whoever loses the parent that npm gave it is told to stop, as npm was.
 */
const checkMs = 500

export function endWithNpm() {
  if (process.env.npm_execpath === undefined && process.env.npm_command === undefined) return
  const parent = process.ppid
  const watch = setInterval(() => {
    if (process.ppid === parent) return
    clearInterval(watch)
    process.kill(process.pid, "SIGTERM")
  }, checkMs)
  watch.unref()
}
