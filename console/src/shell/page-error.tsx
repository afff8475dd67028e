/** Shown where a page cannot be: what went wrong, and the way back. */
import { type ErrorComponentProps, useRouter } from "@tanstack/react-router"
import type { ReactNode } from "react"
import { sentenceOf } from "../api.ts"
import { Button } from "../parts/button.tsx"
import { Empty, useTitle } from "../parts/page.tsx"
import { t } from "../i18n/translate.ts"

export function PageError({ error, reset }: ErrorComponentProps): ReactNode {
  const router = useRouter()
  const again = (): void => {
    reset()
    void router.invalidate()
  }
  return (
    <main className="grid min-h-[60dvh] place-items-center">
      <Empty icon="warn" title={t("This page cannot be shown")} action={<HomeButton />}>
        {sentenceOf(error)}{" "}
        <button type="button" className="underline" onClick={again}>
          {t("Try again")}
        </button>
      </Empty>
    </main>
  )
}

export function PageMissing(): ReactNode {
  return (
    <main className="grid min-h-[60dvh] place-items-center">
      <Missing />
    </main>
  )
}

/** Within an organization: its navigation stays. */
export function OrganizationPageMissing(): ReactNode {
  return (
    <div className="page">
      <div className="panel">
        <Missing />
      </div>
    </div>
  )
}

function Missing(): ReactNode {
  useTitle(t("Page not found"))
  return (
    <Empty icon="search" title={t("Page not found")} action={<HomeButton />}>
      {t("The address may be wrong, or the page was removed.")}
    </Empty>
  )
}

function HomeButton(): ReactNode {
  return <Button onClick={() => location.assign("/")}>{t("Go to the console")}</Button>
}
