/** The same request as code. */
import { Link } from "@tanstack/react-router"
import { type ReactNode, useState } from "react"
import { CopyButton } from "../parts/copy-button.tsx"
import { Dialog } from "../parts/dialog.tsx"
import { Segments } from "../parts/field.tsx"
import { useOrganization } from "../session.ts"
import { codeFor, languageNames, languages, type Language } from "./code.ts"
import type { Draft } from "./draft.ts"
import { T } from "../i18n/sentence.tsx"
import { t } from "../i18n/translate.ts"

export function CodeDialog({ draft, onClose }: { draft: Draft; onClose: () => void }): ReactNode {
  const { id: orgId } = useOrganization()
  const [language, setLanguage] = useState<Language>("curl")
  const code = codeFor(language, draft, location.origin)
  return (
    <Dialog title={t("The same request as code")} onClose={onClose} wide>
      <div className="mb-3 flex flex-wrap items-center justify-between gap-2">
        <Segments
          label={t("Language")}
          value={language}
          options={languages.map((value) => ({ value, label: languageNames[value] }))}
          onChange={setLanguage}
        />
        <CopyButton text={code} label={t("Copy code")} />
      </div>
      <pre
        tabIndex={0}
        aria-label={t("Code")}
        className="bg-sunken border-line max-h-[60vh] overflow-auto rounded-lg border p-3 font-mono text-xs leading-relaxed"
      >
        {code}
      </pre>
      <p className="text-soft mt-3 text-xs">
        <T
          text="Put an API key with the permission <code>inference</code> into the environment variable <code2>UMPIRE_API_KEY</code2>. <a>Create a key</a>"
          code={(children) => <code>{children}</code>}
          code2={(children) => <code>{children}</code>}
          a={(children) => (
            <Link
              to="/o/$orgId/keys"
              params={{ orgId }}
              search={{ open: "create" }}
              className="text-accent underline"
            >
              {children}
            </Link>
          )}
        />
      </p>
    </Dialog>
  )
}
