/** Two threads for CEL and a spare, shared by all organizations, of which each has one at most. */
import { threadChannel } from "../../base/peer/supervisor.ts"
import { PeerGone } from "../../base/peer/peer.ts"
import { createPool } from "../../base/peer/pool.ts"
import type { Claims, ExpressionFlaw, PolicyFlaw, PolicyOutcome } from "./cel.ts"
import type { CelService, Stopped } from "./cel-worker.ts"
import { type ExpressionCheck, type PolicyText, expressionsOf } from "./policy-text.ts"

const waitingMax = 512
/** A thread ends its steps by itself; this is for one that cannot, and then the thread ends with it. */
const silenceMsMax = 30_000
/** Enough for claims and rules; a policy that builds more is stopped before it hurts the process. */
const heapMib = 64

export interface CelPool {
  /** What is wrong with the expressions of a policy. `owner` is the organization that pays with its own turn. */
  check(owner: string, policy: PolicyText): Promise<readonly PolicyFlaw[]>
  /** Throws CelStopped where the policy had to be ended. */
  run(owner: string, policy: PolicyText, claims: Claims): Promise<PolicyOutcome>
  /** Starts the threads before they are needed; without it the first job does. */
  warm(): void
  close(): Promise<void>
}

/** The policy took too long or too much memory. */
export class CelStopped extends Error {
  override readonly name = "CelStopped"
}

export function createCelPool(): CelPool {
  const pool = createPool<CelService>({
    spawn: () =>
      threadChannel(new URL("./cel-worker.ts", import.meta.url), {
        resourceLimits: { maxOldGenerationSizeMb: heapMib, maxYoungGenerationSizeMb: heapMib / 4 },
      }),
    waitingMax,
    silenceMsMax,
    idleMsMax: null,
    hasSpare: true,
  })
  const findFlaw = async (owner: string, expression: ExpressionCheck): Promise<ExpressionFlaw | null> => {
    try {
      return (await orStopped(pool.run(owner, "check", expression))).flaw
    } catch (error) {
      if (!(error instanceof CelStopped)) throw error
      return { message: error.message, line: 1, column: 1 }
    }
  }
  return {
    async check(owner, policy) {
      // The first call starts all threads, so that the second organization does not wait for its own.
      pool.warm()
      const flaws: PolicyFlaw[] = []
      // Each expression has a deadline of its own, so that a long policy of good ones passes.
      for (const expression of expressionsOf(policy)) {
        const flaw = await findFlaw(owner, expression)
        if (flaw) flaws.push({ path: expression.path, ...flaw })
      }
      return flaws
    },
    async run(owner, policy, claims) {
      pool.warm()
      return (await orStopped(pool.run(owner, "run", { policy, claims }))).outcome
    },
    warm: () => pool.warm(),
    close: async () => await pool.close(),
  }
}

async function orStopped<Answer extends object>(answering: Promise<Answer | Stopped>): Promise<Answer> {
  const answer = await answering.catch((error: unknown) => {
    if (!(error instanceof PeerGone)) throw error
    const isSilent = error.reason.includes("silent")
    throw new CelStopped(isSilent ? "it does not answer" : "it needs too much memory", { cause: error })
  })
  if ("stopped" in answer) throw new CelStopped(answer.stopped)
  return answer
}
