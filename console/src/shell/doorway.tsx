/** The frame of the pages outside the console: sign-in, first run and invitations. */
import type { ReactNode } from "react"
import { useTitle } from "../parts/page.tsx"

export function Doorway({ title, children }: { title: string; children: ReactNode }): ReactNode {
  useTitle(title)
  return (
    <main className="grid min-h-dvh place-items-center p-4">
      <div className="w-full max-w-sm">
        <img src="/icon.svg" alt="" className="mx-auto mb-4 size-11" width={44} height={44} />
        <h1 className="mb-5 text-center text-lg font-semibold tracking-tight">{title}</h1>
        <div className="panel shadow-lift flex flex-col gap-4 p-6">{children}</div>
      </div>
    </main>
  )
}
