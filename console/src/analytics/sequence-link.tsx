/** Leads from an answer to the record of its request. */
import { Link } from "@tanstack/react-router"
import type { ReactNode } from "react"
import { useOrganization } from "../session.ts"
import { t } from "../i18n/translate.ts"

export function SequenceLink({ id, children }: { id: string; children?: ReactNode }): ReactNode {
  const { id: orgId } = useOrganization()
  return (
    <Link
      to="/o/$orgId/requests/$seqId"
      params={{ orgId, seqId: id }}
      title={t("What is recorded of this request")}
      className="text-accent underline underline-offset-2"
    >
      {children ?? <span className="font-mono">{id}</span>}
    </Link>
  )
}
