/** In which languages a set's texts came, beside the reference window; nothing while all are in one. */
import type { ReactNode } from "react"
import type { MonitoredLanguages } from "../../../src/contract/question-sets/monitoring.ts"
import { count, languageName, percent } from "../parts/format.ts"
import { Panel } from "../parts/page.tsx"
import { Table } from "../parts/table.tsx"
import { DriftBadge } from "./monitored-question.tsx"
import { t } from "../i18n/translate.ts"

const shareOf = (rows: number, all: number): string => (all === 0 ? "" : percent(rows / all))

export function LanguagesPanel({ monitored }: { monitored: MonitoredLanguages }): ReactNode {
  const { languages, drift } = monitored
  if (languages.length < 2) return null
  return (
    <Panel title={t("Languages of the texts")} actions={<DriftBadge drift={drift} of="text" />}>
      <Table
        label={t("Languages of the texts")}
        rows={languages}
        rowKey={({ language }) => language ?? ""}
        columns={[
          {
            name: t("Language"),
            cell: ({ language }) => (language === null ? t("others") : languageName(language)),
          },
          { name: t("Texts"), align: "right", cell: ({ rows }) => count(rows) },
          { name: t("Share of texts"), align: "right", cell: ({ rows }) => shareOf(rows, drift.rows) },
          {
            name: t("Share before"),
            align: "right",
            cell: (one) => shareOf(one.reference_rows, drift.reference_rows),
          },
        ]}
      />
    </Panel>
  )
}
