/** Publishes a version, after saying what that changes. */
import type { ReactNode } from "react"
import type { QuestionSet } from "../../../src/contract/question-sets/sets.ts"
import { api, useWrite } from "../api.ts"
import { FormDialog } from "../parts/dialog.tsx"
import { type SetAddress, setsKey } from "./set-query.ts"
import { t, tn } from "../i18n/translate.ts"

export function Publish({
  set,
  at,
  version,
  onClose,
}: {
  set: QuestionSet
  at: SetAddress
  version: number
  onClose: () => void
}): ReactNode {
  const { production_version: before, counts } = set
  const write = useWrite(
    async () => await api.putQuestionSetLabel({ params: { ...at, label: "production" }, body: { version } }),
    [setsKey(at.org_id)],
    onClose,
  )
  return (
    <FormDialog
      title={t("Publish version {version} to production?", { version })}
      submit={t("Publish")}
      write={write}
      onClose={onClose}
    >
      <p className="text-soft text-sm">
        {before === null
          ? t(
              "Requests for “set:{name}” are answered by version {version} within seconds, and no longer by the latest one.",
              { name: set.name, version },
            )
          : t(
              "Requests for “set:{name}” are answered by version {version} within seconds instead of version {before}.",
              { name: set.name, version, before },
            )}{" "}
        {t("The audit log says who published it; publish another version to go back.")}
      </p>
      {counts.cases > 0 ? (
        <p className="text-soft text-sm">
          {tn(
            counts.cases,
            "{count} frozen case is checked afterwards, and charged as requests.",
            "{count} frozen cases are checked afterwards, and charged as requests.",
          )}
        </p>
      ) : null}
    </FormDialog>
  )
}
