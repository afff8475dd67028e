/** Lets others of this thread have their turn: messages that wait are read before work goes on. */

/** A browser holds timers back; its messages come at once. */
const { port1, port2 } = typeof setImmediate === "undefined" ? new MessageChannel() : {}
const waiting: (() => void)[] = []
port1?.addEventListener("message", () => waiting.shift()?.())
port1?.start()

export const nextTurn = (): Promise<void> =>
  new Promise((resolve) => {
    if (!port2) return void setImmediate(resolve)
    waiting.push(resolve)
    port2.postMessage(null)
  })
