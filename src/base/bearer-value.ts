/** Compares bearer values that stand for no principal: of workers, and of those who read metrics. */
import { hash, timingSafeEqual } from "node:crypto"

const digest = (text: string): Buffer => hash("sha256", text, "buffer")

/** Whether an Authorization header brings this value; takes as long for every other one. */
export function bringsBearer(authorization: string | null | undefined, value: string): boolean {
  return timingSafeEqual(digest(authorization ?? ""), digest(`Bearer ${value}`))
}
