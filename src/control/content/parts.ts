/** What the handlers of kept content need. */
import type { ContentCipher } from "../../store/content/cipher.ts"
import type { DroppedContent } from "../../store/content/settings.ts"
import type { ControlDeps } from "../audited-change.ts"

export interface ContentAccess {
  readonly cipher: ContentCipher
  /** What this gateway dropped and has not written to the store yet. */
  dropped(organizationId: string): readonly DroppedContent[]
  /** Resolves when what this gateway has answered an organization until now is stored, or cannot be. */
  settle(organizationId: string): Promise<void>
}

export interface ContentControlDeps extends ControlDeps {
  readonly content: ContentAccess
}
