/** Chooses a version of a question set. */
import { skipToken, useQuery } from "@tanstack/react-query"
import type { ReactNode } from "react"
import { api } from "../api.ts"
import { SelectField } from "../parts/field.tsx"
import { useOrganization } from "../session.ts"
import { setsKey } from "../sets/set-query.ts"
import { useVersionList, versionOptions } from "../sets/version-list.ts"
import type { SetVersion } from "./asked.ts"
import type { ChosenSet } from "./chosen-set.ts"
import { t } from "../i18n/translate.ts"

/** As many as the API gives at once. */
const listedMax = 200

function useSetList() {
  const { id: org_id } = useOrganization()
  return useQuery({
    queryKey: [...setsKey(org_id), "to choose from"],
    queryFn: async () =>
      (await api.listQuestionSets({ params: { org_id }, query: { limit: listedMax } })).data.filter(
        ({ question_names: names }) => names.length > 0,
      ),
  })
}

/** The content of the chosen version; null until it is known. */
export function useChosenSet({ setId, version }: ChosenSet): SetVersion | null {
  const { id: org_id } = useOrganization()
  const { data: sets = [] } = useSetList()
  const content = useQuery({
    queryKey: [...setsKey(org_id), "version", setId, version],
    queryFn:
      setId === "" || version === ""
        ? skipToken
        : async () => await api.getQuestionSetVersion({ params: { org_id, set_id: setId, version } }),
  }).data
  const name = sets.find(({ id }) => id === setId)?.name
  return content && name ? { name, ...content } : null
}

export function SetChoice({
  chosen,
  onChange,
}: {
  chosen: ChosenSet
  onChange: (chosen: ChosenSet) => void
}): ReactNode {
  const { data: sets = [], isPending } = useSetList()
  return (
    <>
      <SelectField
        label={t("Question set")}
        value={chosen.setId}
        hint={
          !isPending && sets.length === 0 ? t("There is none yet: save one in the playground.") : undefined
        }
        options={[
          { value: "", label: isPending ? t("Loading sets") : t("Choose") },
          ...sets.map(({ id, name }) => ({ value: id, label: name })),
        ]}
        onChange={({ target: { value } }) => {
          const set = sets.find(({ id }) => id === value)
          const version = set ? String(set.production_version ?? set.latest_version) : ""
          onChange({ setId: value, version })
        }}
      />
      {chosen.setId ? <VersionChoice key={chosen.setId} chosen={chosen} onChange={onChange} /> : null}
    </>
  )
}

function VersionChoice({
  chosen,
  onChange,
}: {
  chosen: ChosenSet
  onChange: (chosen: ChosenSet) => void
}): ReactNode {
  const { id: org_id } = useOrganization()
  const versions = useVersionList({ org_id, set_id: chosen.setId })
  return (
    <SelectField
      label={t("Version")}
      value={chosen.version}
      options={versionOptions(versions, chosen.version)}
      onChange={(event) => onChange({ ...chosen, version: event.target.value })}
    />
  )
}
