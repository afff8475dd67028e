/** How the answers of two versions differ: by question, and the texts whose answer flips. */
import { useQuery } from "@tanstack/react-query"
import type { ReactNode } from "react"
import type { CompareResult } from "../../../src/contract/question-sets/jobs.ts"
import type { QuestionSet } from "../../../src/contract/question-sets/sets.ts"
import { api } from "../api.ts"
import { count, percent, probability } from "../parts/format.ts"
import { Table } from "../parts/table.tsx"
import { labelName } from "./labels.ts"
import { type SetAddress, casesKey, examplesKey } from "./set-query.ts"
import { t, tn } from "../i18n/translate.ts"

/** As many as the API gives at once; of others the id is shown. */
const textsMax = 200

/** The first columns of a list of answers: the text that each is about, and the question. */
export function useAnswerColumns(at: SetAddress) {
  const texts = useTexts(at)
  return [
    {
      name: t("Text"),
      cell: ({ id }: { readonly id: string }) => (
        <span dir="auto" className="line-clamp-2 max-w-xl">
          {texts.get(id) ?? id}
        </span>
      ),
    },
    { name: t("Question"), cell: ({ question }: { readonly question: string }) => question },
  ] as const
}

/** The texts of frozen cases and of the newest examples, by id. */
function useTexts(at: SetAddress): ReadonlyMap<string, string> {
  const query = { limit: textsMax }
  const examples = useQuery({
    queryKey: [...examplesKey(at), "texts"],
    queryFn: async () => (await api.listQuestionSetExamples({ params: at, query })).data,
  })
  const cases = useQuery({
    queryKey: [...casesKey(at), "texts"],
    queryFn: async () => (await api.listQuestionSetCases({ params: at, query })).data,
  })
  return new Map([...(examples.data ?? []), ...(cases.data ?? [])].map(({ id, input }) => [id, input]))
}

export function FlipTables({
  set,
  at,
  result,
}: {
  set: QuestionSet
  at: SetAddress
  result: CompareResult
}): ReactNode {
  const answerColumns = useAnswerColumns(at)
  const asked = (name: string) => set.questions.find((one) => one.name === name)
  return (
    <>
      <Table
        label={t("Differences by question")}
        rows={result.questions}
        rowKey={({ name }) => name}
        columns={[
          { name: t("Question"), cell: ({ name }) => <span className="font-medium">{name}</span> },
          {
            name: t("Flips"),
            align: "right",
            cell: (one) => t("{flips} of {texts}", { flips: count(one.flips), texts: count(one.texts) }),
          },
          { name: t("Mean shift"), align: "right", cell: (one) => percent(one.mean_shift) },
          {
            name: t("Right"),
            align: "right",
            cell: (one) => (
              <>
                {one.labelled === 0
                  ? "–"
                  : `${percent(one.right_before / one.labelled)} → ${percent(one.right_after / one.labelled)}`}
                <span className="text-soft block text-xs">
                  {one.learnt > 0
                    ? tn(
                        one.labelled,
                        "of {count} labelled text; {learnt} were taught with and judge nothing",
                        "of {count} labelled texts; {learnt} were taught with and judge nothing",
                        { learnt: count(one.learnt) },
                      )
                    : tn(one.labelled, "of {count} labelled text", "of {count} labelled texts")}
                </span>
              </>
            ),
          },
          {
            name: t("Abstained"),
            align: "right",
            cell: (one) => `${count(one.abstained_before)} → ${count(one.abstained_after)}`,
          },
        ]}
      />
      {result.flips.length > 0 ? (
        <Table
          label={t("Answers that flip")}
          rows={result.flips}
          rowKey={({ id, question }) => `${id} ${question}`}
          columns={[
            ...answerColumns,
            {
              name: t("Version {from}", { from: result.from }),
              cell: (flip) =>
                `${labelName(asked(flip.question), flip.before)} (${probability(flip.confidence_before)})`,
            },
            {
              name: t("Version {to}", { to: result.to }),
              cell: (flip) =>
                `${labelName(asked(flip.question), flip.after)} (${probability(flip.confidence_after)})`,
            },
          ]}
        />
      ) : (
        <p className="text-soft text-sm">{t("No answer flips.")}</p>
      )}
    </>
  )
}
