/** The API reference, made from the OpenAPI document of this very server. */
import { useQuery } from "@tanstack/react-query"
import { Link } from "@tanstack/react-router"
import { type ReactNode, useDeferredValue, useEffect, useMemo, useState } from "react"
import { TextField } from "../parts/field.tsx"
import { Loaded, useTitle } from "../parts/page.tsx"
import { type Operation, type Reference, readDocument } from "./document.ts"
import { useKnown } from "./known.ts"
import { OperationView, methodColors } from "./operation-view.tsx"
import { T } from "../i18n/sentence.tsx"
import { t } from "../i18n/translate.ts"

export function DocsPage(): ReactNode {
  useTitle(t("API reference"))
  const query = useQuery({
    queryKey: ["openapi"],
    staleTime: Number.POSITIVE_INFINITY,
    queryFn: async () => readDocument(await (await fetch("/openapi.json")).json()),
  })
  return (
    <div className="min-h-dvh">
      <header className="border-line bg-panel sticky top-0 z-20 border-b">
        <div className="mx-auto flex h-12 max-w-7xl items-center gap-3 px-4">
          <Link to="/" className="flex items-center gap-2.5">
            <img src="/icon.svg" alt="" className="size-7" width={28} height={28} />
            <span className="text-sm font-semibold">Umpire</span>
            <span className="sr-only">{t("console")}</span>
          </Link>
          <span className="text-soft text-sm">{t("API reference")}</span>
          <a href="/openapi.json" className="text-soft hover:text-ink ms-auto text-xs underline">
            openapi.json
          </a>
        </div>
      </header>
      <Loaded query={query} label={t("Loading the reference")}>
        {(reference) => <ReferenceView reference={reference} />}
      </Loaded>
    </div>
  )
}

function ReferenceView({ reference }: { reference: Reference }): ReactNode {
  const known = useKnown()
  const [text, setText] = useState("")
  const wanted = useDeferredValue(text.toLowerCase())
  const groups = useMemo(() => {
    const found = reference.operations.filter((operation) =>
      `${operation.method} ${operation.path} ${operation.summary} ${operation.tag}`
        .toLowerCase()
        .includes(wanted),
    )
    return [...Map.groupBy(found, ({ tag }) => tag)]
  }, [reference, wanted])
  useEffect(() => {
    document.getElementById(location.hash.slice(1))?.scrollIntoView()
  }, [])
  return (
    <div className="mx-auto flex max-w-7xl">
      <nav
        aria-label={t("Endpoints")}
        className="border-line sticky top-12 hidden h-[calc(100dvh-3rem)] w-80 shrink-0 overflow-y-auto border-e p-4 lg:block"
      >
        <TextField
          label={t("Find")}
          type="search"
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
        {groups.map(([tag, operations]) => (
          <div key={tag} className="mt-4">
            <p className="pb-1 text-sm font-semibold">{tag}</p>
            {operations.map((operation) => (
              <NavLink key={operation.id} operation={operation} />
            ))}
          </div>
        ))}
      </nav>
      <main className="min-w-0 flex-1 px-4 py-6 sm:px-8">
        <h1 className="text-2xl font-semibold tracking-tight">
          <T
            text="{title} API {version}"
            title={reference.title}
            version={<span className="text-soft text-base font-normal">{reference.version}</span>}
          />
        </h1>
        <p className="text-soft mt-2 max-w-prose text-sm">
          <T
            text="Send <code>Authorization: Bearer</code> with an API key, a console session or a workload access token. Trying a call here uses your console session."
            code={(children) => <code className="font-mono">{children}</code>}
          />
        </p>
        {groups.map(([tag, operations]) => (
          <section key={tag} className="mt-8" aria-label={tag}>
            <h2 className="mb-3 text-lg font-semibold">{tag}</h2>
            <div className="flex flex-col gap-3">
              {operations.map((operation) => (
                <OperationView
                  key={operation.id}
                  operation={operation}
                  schemas={reference.schemas}
                  known={known}
                />
              ))}
            </div>
          </section>
        ))}
      </main>
    </div>
  )
}

function NavLink({ operation: { id, method, summary } }: { operation: Operation }): ReactNode {
  return (
    <a
      href={`#${id}`}
      className="hover:bg-sunken -mx-2 flex items-baseline gap-2 rounded-md px-2 py-1 text-[13px] leading-snug"
    >
      <span className={`w-12 shrink-0 font-mono text-[11px] font-semibold ${methodColors[method] ?? ""}`}>
        {method}
      </span>
      <span>{summary}</span>
    </a>
  )
}
