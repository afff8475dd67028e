/** Chooses a share of the sequences by their ids: no state is kept, and every gateway chooses the same. */
import { createHash } from "node:crypto"

const fractions = 2 ** 32

/** Different purposes choose independently of one another. */
export function isSampled(purpose: string, id: string, share: number): boolean {
  if (share <= 0) return false
  if (share >= 1) return true
  return createHash("sha256").update(`${purpose} ${id}`).digest().readUInt32BE(0) / fractions < share
}
