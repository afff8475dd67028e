/** Hashes and checks passwords with argon2id, one at a time, and so many waiting. */
import { hash, verify } from "@node-rs/argon2"
import { Fault } from "../contract/errors.ts"

/** Argon2id is the library's default; 19 MiB, two passes and one lane are OWASP's first choice for it. */
const cost = { memoryCost: 19_456, timeCost: 2, parallelism: 1 }

/** Each takes tens of milliseconds. */
const waitingMax = 64

let waiting = 0
/** One thread for all: of the few that files, names and compression have too, and of the cores that decisions need. */
let last: Promise<unknown> = Promise.resolve()

export async function hashPassword(password: string): Promise<string> {
  return await inTurn(() => hash(password, cost))
}

/** Takes as long for a user who does not exist or has no password as for one who has. */
export async function passwordMatches(passwordHash: string | null, password: string): Promise<boolean> {
  const matches = await inTurn(async () => await verify(passwordHash ?? (await decoyHash()), password))
  return matches && passwordHash !== null
}

let decoy: Promise<string> | undefined

async function decoyHash(): Promise<string> {
  decoy ??= hash("a password without a user", cost)
  return await decoy
}

async function inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
  if (waiting >= waitingMax)
    throw new Fault("overloaded", "Cannot check passwords now: too many are being checked; try again later", {
      retryAfterMs: 1000,
    })
  waiting += 1
  const turn = last.then(work)
  last = turn.catch(() => undefined)
  try {
    return await turn
  } finally {
    waiting -= 1
  }
}
