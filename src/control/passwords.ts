/** Hashes and checks passwords with argon2id, a bounded number at a time. */
import { hash, verify } from "@node-rs/argon2"
import { Fault } from "../contract/errors.ts"

/** Argon2id is the library's default; 19 MiB, two passes and one lane are OWASP's first choice for it. */
const cost = { memoryCost: 19_456, timeCost: 2, parallelism: 1 }

/** Each takes tens of milliseconds of a core and 19 MiB. */
const waitingMax = 64

let waiting = 0

export async function hashPassword(password: string): Promise<string> {
  return await bounded(() => hash(password, cost))
}

/** Takes as long for a user who does not exist or has no password as for one who has. */
export async function passwordMatches(passwordHash: string | null, password: string): Promise<boolean> {
  const known = passwordHash ?? (await decoyHash())
  const matches = await bounded(() => verify(known, password))
  return matches && passwordHash !== null
}

let decoy: Promise<string> | undefined

async function decoyHash(): Promise<string> {
  decoy ??= hash("a password without a user", cost)
  return await decoy
}

async function bounded<Result>(work: () => Promise<Result>): Promise<Result> {
  if (waiting >= waitingMax)
    throw new Fault("overloaded", "Cannot check passwords now: too many are being checked; try again later", {
      retryAfterMs: 1000,
    })
  waiting += 1
  try {
    return await work()
  } finally {
    waiting -= 1
  }
}
