/** Publishes a version, after saying what that changes. */
import type { ReactNode } from "react"
import type { QuestionSet } from "../../../src/contract/question-sets/sets.ts"
import { api, useWrite } from "../api.ts"
import { FormDialog } from "../parts/dialog.tsx"
import { plural } from "../parts/format.ts"
import { type SetAddress, setsKey } from "./set-query.ts"

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
      title={`Publish version ${version} to production?`}
      submit="Publish"
      write={write}
      onClose={onClose}
    >
      <p className="text-soft text-sm">
        Requests for “set:{set.name}” are answered by version {version} within seconds
        {before === null ? ", and no longer by the latest one" : ` instead of version ${before}`}. The audit
        log says who published it; publish another version to go back.
      </p>
      {counts.cases > 0 ? (
        <p className="text-soft text-sm">
          {plural(counts.cases, "frozen case")} {counts.cases === 1 ? "is" : "are"} checked afterwards, and
          charged as requests.
        </p>
      ) : null}
    </FormDialog>
  )
}
