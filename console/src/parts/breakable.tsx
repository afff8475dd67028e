/** A long name of a field breaks between its words, not inside them. */
import type { ReactNode } from "react"

export const breakable = (name: string): ReactNode =>
  name.split(/(?<=[._])/).flatMap((part, index) => (index === 0 ? [part] : [<wbr key={index} />, part]))
