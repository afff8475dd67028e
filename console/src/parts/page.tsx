/** What pages are made of: a heading with its actions, panels, notices, empty states, badges. */
import { type ReactNode, useEffect } from "react"
import { Button, Spinner } from "./button.tsx"
import { ErrorText } from "./error-text.tsx"
import { Icon, type IconName } from "./icon.tsx"
import { t } from "../i18n/translate.ts"

export function Page({
  title,
  about,
  actions,
  children,
}: {
  title: string
  about?: ReactNode
  actions?: ReactNode
  children: ReactNode
}): ReactNode {
  useTitle(title)
  return (
    <div className="page gap-5">
      <header className="flex flex-wrap items-end justify-between gap-x-6 gap-y-3">
        <div className={`max-w-4xl min-w-0 ${about ? "sm:flex-1 sm:basis-72" : ""}`}>
          <h1 className="text-xl font-semibold tracking-tight wrap-anywhere">{title}</h1>
          {about ? <p className="text-soft mt-1 text-sm">{about}</p> : null}
        </div>
        {actions ? <div className="flex flex-wrap gap-2">{actions}</div> : null}
      </header>
      {children}
    </div>
  )
}

/** The title of the window names the page, so that tabs and bookmarks can be told apart. */
export function useTitle(title: string): void {
  useEffect(() => {
    document.title = `${title} · Umpire`
  }, [title])
}

export function Panel({
  title,
  actions,
  children,
  className = "",
}: {
  title?: string
  actions?: ReactNode
  children: ReactNode
  className?: string
}): ReactNode {
  return (
    <section className={`panel min-w-0 ${className}`} aria-label={title}>
      {title ? (
        <div className="border-line flex min-h-12 flex-wrap items-center justify-between gap-2 border-b px-4 py-2">
          <h2 className="text-sm font-semibold">{title}</h2>
          {actions}
        </div>
      ) : null}
      <div className="p-4">{children}</div>
    </section>
  )
}

const tones = {
  bad: "bg-bad-wash text-bad",
  warn: "bg-warn-wash text-warn",
  good: "bg-accent-wash text-accent",
  info: "bg-info-wash text-info",
  plain: "bg-sunken text-soft",
} as const
export type Tone = keyof typeof tones

export function Notice({
  tone,
  children,
  action,
}: {
  tone: Tone
  children: ReactNode
  action?: ReactNode
}): ReactNode {
  return (
    <div
      role={tone === "bad" ? "alert" : "status"}
      className={`flex flex-wrap gap-2 rounded-lg px-3 py-2.5 text-sm ${action ? "items-center" : "items-start"} ${tones[tone]}`}
    >
      {tone === "bad" || tone === "warn" ? <Icon name="warn" className="mt-0.5 size-4" /> : null}
      <div className={`min-w-0 flex-1 wrap-anywhere ${action ? "basis-56" : ""}`}>{children}</div>
      {action}
    </div>
  )
}

export function Badge({
  tone = "plain",
  title,
  children,
}: {
  tone?: Tone
  title?: string
  children: ReactNode
}): ReactNode {
  return (
    <span
      title={title}
      className={`inline-flex items-center rounded-full px-2 py-0.5 text-xs font-medium whitespace-nowrap ${tones[tone]}`}
    >
      {children}
    </span>
  )
}

export function Empty({
  icon,
  title,
  children,
  action,
}: {
  icon: IconName
  title: string
  children?: ReactNode
  action?: ReactNode
}): ReactNode {
  return (
    <div className="flex flex-col items-center gap-2 px-6 py-12 text-center">
      <span className="bg-sunken text-soft grid size-10 place-items-center rounded-full">
        <Icon name={icon} className="size-5" />
      </span>
      <p className="text-sm font-medium">{title}</p>
      {children ? <p className="text-soft max-w-md text-sm">{children}</p> : null}
      {action ? <div className="mt-2">{action}</div> : null}
    </div>
  )
}

/** "Loading keys", say. */
export function Loading({ label }: { label: string }): ReactNode {
  return (
    <div role="status" className="text-soft flex items-center justify-center gap-2 py-10 text-sm">
      <Spinner /> {label}
    </div>
  )
}

interface Asked<T> {
  readonly data: T | undefined
  readonly error: unknown
  readonly isPending: boolean
  refetch(): unknown
}

/** What a query shows while it waits, when it fails, and when it has answered. */
export function Loaded<T>({
  query,
  label,
  children,
}: {
  query: Asked<T>
  /** Of the time before there is anything: "Loading keys". */
  label: string
  children: (data: T) => ReactNode
}): ReactNode {
  if (query.data !== undefined) return children(query.data)
  if (query.isPending) return <Loading label={label} />
  return (
    <Notice
      tone="bad"
      action={
        <Button small onClick={() => void query.refetch()}>
          {t("Try again")}
        </Button>
      }
    >
      <ErrorText error={query.error} />
    </Notice>
  )
}
