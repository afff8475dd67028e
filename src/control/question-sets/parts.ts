/** What the handlers of question sets are made of. */
import type { Catalog } from "../../base/catalog.ts"
import type { ControlParts } from "../change.ts"

export interface QuestionSetParts extends ControlParts {
  readonly catalog: Catalog
  /** The address of this installation, where editors find the schema of a file. */
  publicUrl(): string
}
