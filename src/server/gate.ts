/** What the server must be told about principals; the composition root brings the answers. */
import type { Soon } from "../base/soon.ts"
import type { Principal, Standing } from "../contract/access.ts"

/** What a call is about, as far as access is concerned. */
export type Subject =
  | { readonly kind: "organization"; readonly organizationId: string }
  | { readonly kind: "billing_account"; readonly billingAccountId: string }
  /** Inference: a key's own organization, or the one that a session names (null: its personal one). */
  | { readonly kind: "inference"; readonly organizationId: string | null }

export interface Gate {
  /** Who it stands for, where that is known without waiting; undefined otherwise. */
  recall?(bearer: string, connection?: object): Principal | undefined
  /** Who a bearer value stands for, or null when it stands for nobody; the connection that brought it may be named. */
  authenticate(bearer: string, connection?: object): Promise<Principal | null>
  /**
   * What the principal is there, or null when it must not learn that the subject exists; at once where that is known
   * without waiting.
   */
  standing(principal: Principal, subject: Subject): Soon<Standing | null>
}
