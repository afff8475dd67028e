/** What was asked before, in this browser only. */
import { type ReactNode, useState } from "react"
import { forgetSequences } from "../analytics/recent.ts"
import { Button } from "../parts/button.tsx"
import { Dialog } from "../parts/dialog.tsx"
import { ago, decimal } from "../parts/format.ts"
import { Empty } from "../parts/page.tsx"
import type { Answer, Draft } from "./draft.ts"
import { useBrowserStorage } from "../session.ts"
import { clearHistory, readHistory } from "./keep.ts"
import { t } from "../i18n/translate.ts"

export function HistoryDialog({
  onPick,
  onClose,
}: {
  onPick: (draft: Draft) => void
  onClose: () => void
}): ReactNode {
  const storage = useBrowserStorage()
  const [entries, setEntries] = useState(() => readHistory(storage))
  const clear = (): void => {
    clearHistory(storage)
    forgetSequences(storage)
    setEntries([])
  }
  return (
    <Dialog title={t("History")} onClose={onClose} wide>
      {entries.length === 0 ? (
        <Empty icon="clock" title={t("Nothing asked yet")}>
          {t("Requests you run here are listed in this browser, and nowhere else.")}
        </Empty>
      ) : (
        <>
          <ul className="divide-line -mx-2 max-h-[60vh] divide-y overflow-y-auto">
            {entries.map(({ at, draft, answers }) => (
              <li key={at}>
                <button
                  type="button"
                  className="hover:bg-sunken w-full rounded-md px-2 py-2.5 text-start"
                  onClick={() => onPick(draft)}
                >
                  <span className="flex justify-between gap-3 text-sm">
                    <span dir="auto" className="truncate">
                      {draft.evidence.slice(0, 120)}
                    </span>
                    <span className="text-soft shrink-0 text-xs">{ago(at)}</span>
                  </span>
                  <span className="text-soft mt-0.5 block truncate text-xs">
                    {draft.questions
                      .map(
                        ({ instructions }, index) =>
                          `${instructions} ${inShort(answers[index], draft, index)}`,
                      )
                      .join(" · ")}
                  </span>
                </button>
              </li>
            ))}
          </ul>
          <div className="mt-3 flex items-center justify-between">
            <p className="text-soft text-xs">{t("Kept in this browser only.")}</p>
            <Button kind="bare" small icon="trash" onClick={clear}>
              {t("Clear history")}
            </Button>
          </div>
        </>
      )}
    </Dialog>
  )
}

function inShort(answer: Answer | null | undefined, draft: Draft, index: number): string {
  if (!answer) return ""
  switch (answer.type) {
    case "predicate":
      return answer.probability >= 0.5 ? "yes" : "no"
    case "choice":
      return draft.questions[index]?.options[answer.winner]?.value ?? ""
    case "score":
      return decimal(answer.score, 1)
  }
}
