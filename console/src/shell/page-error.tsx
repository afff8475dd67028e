/** Shown where a page cannot be: what went wrong, and the way back. */
import { type ErrorComponentProps, useRouter } from "@tanstack/react-router"
import type { ReactNode } from "react"
import { sentenceOf } from "../api.ts"
import { Button } from "../parts/button.tsx"
import { Empty } from "../parts/page.tsx"

export function PageError({ error, reset }: ErrorComponentProps): ReactNode {
  const router = useRouter()
  const again = (): void => {
    reset()
    void router.invalidate()
  }
  return (
    <main>
      <Empty icon="warn" title="This page cannot be shown" action={<HomeButton />}>
        {sentenceOf(error)}{" "}
        <button type="button" className="underline" onClick={again}>
          Try again
        </button>
      </Empty>
    </main>
  )
}

export function PageMissing(): ReactNode {
  return (
    <main>
      <Empty icon="search" title="Page not found" action={<HomeButton />}>
        The address may be wrong, or the page was removed.
      </Empty>
    </main>
  )
}

function HomeButton(): ReactNode {
  return (
    <Button className="mt-2" onClick={() => location.assign("/")}>
      Go to the console
    </Button>
  )
}
