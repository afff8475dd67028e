/** Freezes texts with the answers that every version must give. */
import type { CallOf, OutputOf } from "../../contract/endpoint.ts"
import { Fault } from "../../contract/errors.ts"
import { questionSetLimits } from "../../contract/question-sets/content.ts"
import type { exampleTable } from "../../contract/question-sets/examples.ts"
import { findCaseHashes, putCases } from "../../store/question-sets/examples.ts"
import { checkStorage, countRows } from "../../store/question-sets/sets.ts"
import type { QuestionSetDeps } from "./content.ts"
import { readOrRefuse } from "./labels.ts"
import { writeInParts } from "./write-in-parts.ts"

type AddCases = (typeof exampleTable)["addQuestionSetCases"]

export async function addCases(deps: QuestionSetDeps, call: CallOf<AddCases>): Promise<OutputOf<AddCases>> {
  const rows = call.body.cases
  let addedBefore = 0
  return await writeInParts(deps, call, {
    rows,
    idPrefix: "case",
    async checkRoom({ sql, set, questions }, parts) {
      const fresh = new Map<string, number>()
      for (const { hash, input, expected } of parts.flat())
        fresh.set(hash, Buffer.byteLength(input) + JSON.stringify(readOrRefuse(expected, questions)).length)
      for (const hash of await findCaseHashes(sql, set.id, [...fresh.keys()])) fresh.delete(hash)
      checkCount((await countRows(sql, set.id)).cases + fresh.size)
      const bytes = [...fresh.values()].reduce((sum, own) => sum + own, 0)
      await checkStorage(sql, set, "cases", { rows: fresh.size, bytes })
    },
    async write({ sql, now, questions }, part) {
      // Of equal texts the last one stands.
      const byHash = new Map(
        part.map(({ hash, stored, expected }) => [
          hash,
          {
            ...stored,
            inputHash: hash,
            expected: JSON.stringify(readOrRefuse(expected, questions)),
            createdAt: now,
          },
        ]),
      )
      return await putCases(sql, [...byHash.values()])
    },
    written(added) {
      addedBefore += added
    },
    async end({ sql, set, audit }, addedLast) {
      checkCount((await countRows(sql, set.id)).cases)
      await checkStorage(sql, set, "cases")
      const added = addedBefore + addedLast
      const counts = { added, updated: rows.length - added }
      await audit("question_set.cases.add", set, { after: counts })
      return counts
    },
  })
}

function checkCount(cases: number): void {
  if (cases > questionSetLimits.casesMax)
    throw new Fault("conflict", `Cannot add the cases: at most ${questionSetLimits.casesMax} are kept`)
}
