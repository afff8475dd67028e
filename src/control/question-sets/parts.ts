/** What the handlers of question sets are made of. */
import type { Catalog } from "../../base/catalog.ts"
import type { ControlDeps } from "../audited-change.ts"
import type { ContentAccess } from "../content/parts.ts"

export interface QuestionSetDeps extends ControlDeps {
  /** Encrypts the texts of examples. */
  readonly content: Pick<ContentAccess, "cipher">
  readonly catalog: Catalog
  /** The address of this installation, where editors find the schema of a file. */
  publicUrl(): string
}
