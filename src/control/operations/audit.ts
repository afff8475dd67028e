/** The operator's check of the audit log. */
import { verifyAudit } from "../../store/audit.ts"
import { type Operations, type OperatorParts, OrganizationInput, read } from "./input.ts"

interface AuditFinding {
  readonly organization_id: string
  readonly intact: boolean
  /** Entries when intact, else the place of the first flaw. */
  readonly position: number
  readonly reason: string | null
}

export function auditOperations({ database }: OperatorParts): Operations {
  return {
    "audit.verify": async (input): Promise<AuditFinding[]> => {
      const { organization } = read(OrganizationInput, input)
      // Deleted organizations keep their log.
      const rows = await database.query<{ id: string }>(
        "SELECT id FROM organizations WHERE $1::text IS NULL OR id = $1 ORDER BY id",
        [organization ?? null],
      )
      const findings: AuditFinding[] = []
      for (const { id } of rows) {
        const verdict = await verifyAudit(database, id)
        findings.push({
          organization_id: id,
          intact: verdict.intact,
          position: Number(verdict.intact ? verdict.entries : verdict.position),
          reason: verdict.intact ? null : verdict.reason,
        })
      }
      return findings
    },
  }
}
