/** Makes question sets of the `calibrations` in the configuration, which requests named by a header before there were sets. */
import type { Log } from "../../base/log.ts"
import { SetName } from "../../contract/question-sets/content.ts"
import { encodeContent } from "../../store/question-sets/content.ts"
import {
  findSet,
  insertMigratedCalibration,
  insertSet,
  insertVersion,
} from "../../store/question-sets/sets.ts"
import { type ControlParts, change, systemCaller } from "../change.ts"

type Calibrations = Readonly<Record<string, { readonly temperature: number; readonly bias: number }>>

/** A set without questions in every organization, once for each name that is free there. */
export async function migrateCalibrations(
  parts: ControlParts,
  {
    calibrations,
    model,
    log,
  }: { readonly calibrations: Calibrations; readonly model: string; readonly log: Log },
): Promise<void> {
  for (const [name, calibration] of Object.entries(calibrations)) {
    const checked = SetName.safeParse(name.toLowerCase().replaceAll(/[^a-z0-9._-]+/g, "-"))
    if (!checked.success) {
      log.warn({ name }, "a calibration is left out: its name cannot be the name of a question set")
      continue
    }
    const { text, hash } = encodeContent({ model, questions: [], calibration })
    const made = await change(parts, systemCaller, async ({ sql, now, audit, touched }) => {
      const organizations = await sql.query<{ id: string }>(
        "SELECT id FROM organizations WHERE deleted_at IS NULL ORDER BY id FOR UPDATE",
      )
      let count = 0
      for (const { id: organizationId } of organizations) {
        if (!(await insertMigratedCalibration(sql, organizationId, name))) continue
        if (await findSet(sql, organizationId, checked.data)) continue
        const id = parts.ids.next("qs")
        const origin = { createdBy: null, createdAt: now }
        await insertSet(sql, {
          id,
          organizationId,
          name: checked.data,
          description: "From calibrations in the configuration; ask it with questions of your own.",
          latest: 1,
          updatedAt: now,
          ...origin,
        })
        await insertVersion(sql, { setId: id, number: 1, hash, content: text, note: "", ...origin })
        await audit({
          organizationId,
          action: "question_set.create",
          resource: { type: "question_set", id },
          before: null,
          after: { name: checked.data, version: 1, hash },
        })
        touched({ table: "question_sets", id: organizationId })
        count++
      }
      return count
    })
    if (made > 0)
      log.info(
        { name, set: checked.data, organizations: made },
        "a calibration of the configuration is a question set now; remove it from the configuration",
      )
  }
}
