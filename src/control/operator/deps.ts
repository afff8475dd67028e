/** What the operator's endpoints about the store need. */
import type { Catalog } from "../../base/catalog.ts"
import type { RateLimit } from "../../contract/access.ts"
import type { ControlDeps } from "../audited-change.ts"

export interface OperatorDeps extends ControlDeps {
  /** Read when an endpoint needs it: without a running server that takes a moment. */
  catalog(): Promise<Catalog>
  /** Who moves money in for new billing accounts. */
  readonly provider: string
  /** What organizations without a limit of their own have. */
  readonly rateLimit: RateLimit
  /** The address of this installation as browsers see it. */
  publicUrl(): string
}

/** Where a one-time link signs in. In the fragment, which browsers do not send: it reaches no log of a proxy. */
export const signInAddress = (deps: Pick<OperatorDeps, "publicUrl">, link: string): string =>
  `${deps.publicUrl().replace(/\/$/, "")}/sign-in#link=${link}`
