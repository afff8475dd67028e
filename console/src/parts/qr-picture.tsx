/** A QR code as a picture, on white in the dark too: readers need the contrast. */
import { type ReactNode, useMemo } from "react"
import { qrCode } from "./qr-code.ts"

/** Modules around it that stay white. */
const quiet = 4

export function QrPicture({ text, label }: { text: string; label: string }): ReactNode {
  const code = useMemo(() => qrCode(text), [text])
  if (!code) return null
  const size = code.length + 2 * quiet
  const dark = code.flatMap((line, row) =>
    line.flatMap((isDark, column) => (isDark ? [`M${column + quiet} ${row + quiet}h1v1h-1z`] : [])),
  )
  return (
    <svg
      role="img"
      aria-label={label}
      viewBox={`0 0 ${size} ${size}`}
      shapeRendering="crispEdges"
      className="w-44 self-center rounded-lg"
    >
      <rect width={size} height={size} fill="#fff" />
      <path d={dark.join("")} fill="#000" />
    </svg>
  )
}
