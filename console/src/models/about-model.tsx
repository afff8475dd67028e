/** What is known of a model: how it decides, or its size, languages and measured quality with its card. */
import type { ReactNode } from "react"
import type { OrgModel } from "../../../src/contract/platform/models.ts"
import { Button } from "../parts/button.tsx"
import { Figure } from "../parts/figure.tsx"
import { languageName } from "../parts/format.ts"
import { Badge } from "../parts/page.tsx"
import { saveFile } from "../tables/save-file.ts"
import { measuredNames } from "./measured-names.ts"
import { decidesBy, uncalibratedWords } from "./method-words.ts"
import { t } from "../i18n/translate.ts"

const bytesPerMegabyte = 1_000_000

export function AboutModel({ model: { about } }: { model: OrgModel }): ReactNode {
  if (about === null) return null
  const megabytes = Math.round(about.file_bytes / bytesPerMegabyte)
  return (
    <details className="text-xs">
      <summary className="text-soft font-medium">{t("Size, languages and measured quality")}</summary>
      <dl className="number grid grid-cols-2 gap-x-4 gap-y-1.5 pt-2">
        <Figure
          look="plain"
          name={t("Size")}
          value={t("{parameters} weights, {megabytes} MB", { parameters: about.parameters, megabytes })}
        />
        <Figure
          look="plain"
          name={t("Languages")}
          value={about.languages.map((code) => languageName(code)).join(", ")}
        />
        <Figure look="plain" name={t("Licence")} value={about.licence} />
        {about.measured.map(({ name, value }) => (
          <Figure key={name} look="plain" name={measuredNames[name] ?? name} value={value} />
        ))}
      </dl>
      <Button small icon="download" className="mt-2" onClick={() => void saveCard()}>
        {t("Download its card")}
      </Button>
    </details>
  )
}

/** One card says how all models that come with Umpire were trained and measured. */
async function saveCard(): Promise<void> {
  const { default: card } = await import("../../../model/MODEL_CARD.md?raw")
  saveFile("umpire-model-card.md", card, "text/markdown")
}

export function HowItDecides({ model: { decides, calibrated } }: { model: OrgModel }): ReactNode {
  if (decides === null) return null
  return (
    <p className="text-soft flex flex-wrap items-center gap-x-2 gap-y-1 text-xs">
      <span>{decidesBy(decides)}.</span>
      {calibrated === false ? (
        <Badge tone="warn" title={uncalibratedWords}>
          {t("Not calibrated")}
        </Badge>
      ) : (
        <Badge tone="good">{t("Calibrated")}</Badge>
      )}
    </p>
  )
}
