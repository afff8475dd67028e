/** Why there is nothing to review yet, and the offer to keep what reviewers need. */
import { useQuery } from "@tanstack/react-query"
import { Link } from "@tanstack/react-router"
import type { ReactNode } from "react"
import type { QuestionSet } from "../../../src/contract/question-sets/sets.ts"
import { api, useWrite } from "../api.ts"
import { contentKey, contentSettingsQuery } from "../content/content-panel.tsx"
import { Button } from "../parts/button.tsx"
import { ErrorNotice } from "../parts/error-notice.tsx"
import { Empty, Notice } from "../parts/page.tsx"
import { useIsOwner, useOrganization } from "../session.ts"
import { setsKey } from "./set-query.ts"
import { t, tn } from "../i18n/translate.ts"

export function ContentNeeded({ set, isAvailable }: { set: QuestionSet; isAvailable: boolean }): ReactNode {
  const { id: org_id } = useOrganization()
  const owner = useIsOwner()
  const { data: settings } = useQuery(contentSettingsQuery(org_id))
  const keep = useWrite(async () => {
    const {
      keep: _,
      sample_rate,
      retention_days,
      redact,
      version,
    } = settings ?? (await api.getContentSettings({ params: { org_id } }))
    return await api.putContentSettings({
      params: { org_id },
      headers: { "if-match": `"${version}"` },
      body: {
        keep: "evidence_and_answers",
        sample_rate: sample_rate || 1,
        retention_days,
        redact,
      },
    })
  }, [contentKey(org_id), setsKey(org_id)])
  return (
    <div className="panel flex flex-col gap-2 pb-4">
      <Empty
        icon="eye"
        title={t("People can review doubtful answers here")}
        action={
          isAvailable && owner ? (
            <div className="flex flex-wrap justify-center gap-2">
              <Button
                kind="loud"
                busy={keep.isPending}
                disabled={!settings}
                onClick={() => keep.mutate(undefined)}
              >
                {tn(
                  settings?.retention_days ?? 30,
                  "Keep texts and answers for {count} day",
                  "Keep texts and answers for {count} days",
                )}
              </Button>
              <Link
                to="/o/$orgId/settings"
                params={{ orgId: org_id }}
                className="border-strong bg-panel hover:bg-sunken inline-flex h-9 items-center rounded-md border px-3 text-sm font-medium"
              >
                {t("Choose in Settings")}
              </Link>
            </div>
          ) : undefined
        }
      >
        {t(
          "To decide whether “{name}” answered right, reviewers must see the text. This organization keeps no texts of its requests: nothing is stored unless you choose it. Kept content is encrypted, deleted after the time you set, and every reading is in the audit log.",
          { name: set.name },
        )}
      </Empty>
      <div className="px-4">
        <ErrorNotice error={keep.error} />
        {isAvailable ? null : (
          <Notice tone="warn">
            {t(
              "This installation has no key to encrypt content with, so nothing can be kept. The operator sets content.keys.",
            )}
          </Notice>
        )}
        {isAvailable && !owner ? (
          <Notice tone="info">{t("Only owners can choose what is kept.")}</Notice>
        ) : null}
      </div>
    </div>
  )
}
