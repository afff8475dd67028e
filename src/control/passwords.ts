/** Passwords and their hashes: made and compared one at a time, in turns between the networks that they come from. */
import { hash, verify } from "@node-rs/argon2"
import { networkOf } from "../base/addresses.ts"
import { FairTurns } from "../base/turns.ts"
import { Fault } from "../contract/errors.ts"

/** Argon2id is the library's default; 19 MiB, two passes and one lane are OWASP's first choice for it. */
const cost = { memoryCost: 19_456, timeCost: 2, parallelism: 1 }

/** Each takes tens of milliseconds. */
const waitingMax = 64
const waitingPerNetworkMax = 16

/** `ip` is the address that the password came from; left out where it is the server's own. */
export async function hashPassword(password: string, ip = ""): Promise<string> {
  return await inTurn(ip, () => hash(password, cost))
}

/** Takes as long for a user who does not exist or has no password as for one who has. */
export async function passwordMatches(
  passwordHash: string | null,
  password: string,
  ip = "",
): Promise<boolean> {
  const matches = await inTurn(ip, async () => await verify(passwordHash ?? (await decoyHash()), password))
  return matches && passwordHash !== null
}

let decoy: Promise<string> | undefined

async function decoyHash(): Promise<string> {
  decoy ??= hash("a password without a user", cost)
  return await decoy
}

interface Turn {
  readonly network: string
  begin(): void
  refuse(fault: Fault): void
}

const turns = new FairTurns()
const waiting: Turn[] = []
/** One thread for all: of the few that files, names and compression have too, and of the cores that decisions need. */
let isWorking = false

async function inTurn<Result>(ip: string, work: () => Promise<Result>): Promise<Result> {
  const network = networkOf(ip)
  makeRoom(network)
  const turn = Promise.withResolvers<void>()
  waiting.push({ network, begin: turn.resolve, refuse: turn.reject })
  beginNext()
  await turn.promise
  try {
    return await work()
  } finally {
    isWorking = false
    beginNext()
  }
}

function beginNext(): void {
  if (isWorking) return
  const network = turns.next(waiting.map((turn) => turn.network))
  const at = waiting.findIndex((turn) => turn.network === network)
  const [first] = at < 0 ? [] : waiting.splice(at, 1)
  if (!first) return
  isWorking = true
  // One works at a time, so that only the order of their turns counts.
  turns.begin(first.network)()
  first.begin()
}

/** In a full queue the latest of the network with the most gives way, unless that is the newcomer's. */
function makeRoom(network: string): void {
  const waitingOf = (one: string): number => waiting.filter((turn) => turn.network === one).length
  const own = waitingOf(network)
  if (own >= waitingPerNetworkMax) throw tooMany("rate_limited")
  if (waiting.length < waitingMax) return
  const largest = waiting.reduce((most, turn) =>
    waitingOf(turn.network) > waitingOf(most.network) ? turn : most,
  )
  if (waitingOf(largest.network) <= own + 1) throw tooMany("overloaded")
  const [last] = waiting.splice(
    waiting.findLastIndex((turn) => turn.network === largest.network),
    1,
  )
  last?.refuse(tooMany("overloaded"))
}

const tooMany = (code: "rate_limited" | "overloaded"): Fault =>
  new Fault(code, "Cannot check passwords now: too many are being checked; try again later", {
    retryAfterMs: 1000,
  })
