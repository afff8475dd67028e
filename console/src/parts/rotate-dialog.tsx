/** Rotates a secret: what happens to the old one is chosen first. */
import { type ReactNode, useState } from "react"
import { useWrite } from "../api.ts"
import { FormDialog } from "./dialog.tsx"
import { SelectField } from "./field.tsx"
import { t } from "../i18n/translate.ts"

const graces = [
  { seconds: 0, lasts: null },
  { seconds: 3_600, lasts: t("1 more hour") },
  { seconds: 86_400, lasts: t("1 more day") },
  { seconds: 604_800, lasts: t("1 more week") },
] as const
const graceSecondsDefault = 86_400

export function RotateDialog<Rotated>({
  title,
  about,
  now,
  on,
  rotate,
  refreshes,
  onClose,
  onDone,
}: {
  title: string
  about: string
  /** What becomes of the old secret without a grace period. */
  now: string
  /** What it does during one: “Works”. */
  on: (lasts: string) => string
  rotate: (graceSeconds: number) => Promise<Rotated>
  /** The lists that it changes. */
  refreshes: readonly (readonly unknown[])[]
  onClose: () => void
  onDone: (rotated: Rotated) => void
}): ReactNode {
  const [grace, setGrace] = useState(graceSecondsDefault)
  const write = useWrite(async () => await rotate(grace), refreshes, onDone)
  return (
    <FormDialog title={title} submit={t("Rotate")} write={write} onClose={onClose}>
      <p className="text-soft text-sm">{about}</p>
      <SelectField
        label={t("The old secret")}
        value={String(grace)}
        options={graces.map(({ seconds, lasts }) => ({
          value: String(seconds),
          label: lasts === null ? now : on(lasts),
        }))}
        onChange={(event) => setGrace(Number(event.target.value))}
      />
    </FormDialog>
  )
}
