/** How good the answers are in each language that the rows' texts have; nothing where they have one. */
import { type ReactNode, useMemo } from "react"
import { type Judged, evaluateByLanguage } from "../../../src/scoring/evaluation.ts"
import { count, decimal, languageName, percent } from "../parts/format.ts"
import { Panel } from "../parts/page.tsx"
import { Table } from "../parts/table.tsx"
import { t } from "../i18n/translate.ts"

export function ByLanguage({ rows }: { rows: readonly Judged[] }): ReactNode {
  const found = useMemo(() => evaluateByLanguage(rows), [rows])
  if (found.length === 0) return null
  return (
    <Panel title={t("By language")}>
      <Table
        label={t("Figures by language")}
        rows={found}
        rowKey={({ language }) => language}
        columns={[
          { name: t("Language"), cell: ({ language }) => languageName(language) },
          { name: t("Rows"), align: "right", cell: ({ evaluation }) => count(evaluation.count) },
          { name: t("Accuracy"), align: "right", cell: ({ evaluation }) => percent(evaluation.accuracy) },
          {
            name: t("Majority guess"),
            align: "right",
            cell: ({ evaluation }) => percent(evaluation.majority),
          },
          { name: t("Macro F1"), align: "right", cell: ({ evaluation }) => decimal(evaluation.macroF1, 3) },
          {
            name: t("Calibration error"),
            align: "right",
            cell: ({ evaluation }) => percent(evaluation.calibrationError),
          },
        ]}
      />
    </Panel>
  )
}
