/** The gateway's side of analytics: asks the analytics process, which is started with the first question. */
import { PeerGone } from "../../base/peer/peer.ts"
import { Supervisor, childChannel } from "../../base/peer/supervisor.ts"
import { EventEngineError } from "./engine.ts"
import type { AnalyticsService, Place, QuestionKind } from "./service.ts"

export interface Events {
  ask<Kind extends QuestionKind>(
    kind: Kind,
    input: AnalyticsService[Kind]["input"],
  ): Promise<AnalyticsService[Kind]["output"]>
  close(): Promise<void>
}

interface EventsSettings {
  readonly place: Place
  /** Called when the process ends unexpectedly. */
  readonly onDeath?: (reason: string) => void
}

const pendingMax = 200
const closeMsMax = 10_000

/** Starts nothing yet: the process begins with the first question. */
export function openEvents({ place, onDeath }: EventsSettings): Events {
  const peer = new Supervisor<AnalyticsService>({
    spawn: () => childChannel(new URL("./child.ts", import.meta.url)),
    open: place,
    pendingMax,
    ...(onDeath ? { onDeath } : {}),
  })
  return {
    async ask(kind, input) {
      try {
        return await peer.call(kind, input)
      } catch (error) {
        throw new EventEngineError(sentenceOf(error), { cause: error })
      }
    },
    async close() {
      // What was acknowledged is on disk; an orderly end only saves the next start some work.
      await peer.running?.call("close", null, AbortSignal.timeout(closeMsMax)).catch(() => undefined)
      await peer.close()
    },
  }
}

function sentenceOf(error: unknown): string {
  if (error instanceof PeerGone) return "Cannot ask about events: the analytics process ended"
  return error instanceof Error ? error.message : String(error)
}
