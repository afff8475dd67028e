/** What a reader of model output answers, whatever the family. */
import type { CallFormat } from "./families.ts"

export type ReadEvent =
  | { readonly kind: "reasoning"; readonly text: string }
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "call"; readonly name: string }
  | { readonly kind: "arguments"; readonly text: string }

export interface Reader {
  read(piece: string): ReadEvent[]
  /** What was held back because it could have been the start of a mark. */
  end(): ReadEvent[]
  /** A call whose name is not known yet, with what was written of it: a grammar can take over here. */
  readonly opened: { readonly format: CallFormat; readonly body: string } | null
  readonly inReasoning: boolean
  /** Inside a call: its name is known and its arguments are not whole yet. */
  readonly inCall: boolean
}
