/** Which version of which question set is chosen. */

export interface ChosenSet {
  /** Empty: none is chosen. */
  readonly setId: string
  readonly version: string
}

export const noSet: ChosenSet = { setId: "", version: "" }
