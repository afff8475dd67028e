import { expect, test } from "vitest"
import { type Candidate, candidatesOf } from "./candidates.ts"

/** Of rows that have a vector and words. */
function candidatesFor(rows: { people: number; teacher?: number; fields?: number }): Candidate[] {
  const { people, teacher = 0, fields = 0 } = rows
  const some = { size: 4, numbers: new Float64Array() }
  return candidatesOf({
    read: { vector: some, words: some, fields: { ...some, size: fields } },
    labels: new Int32Array(people + teacher),
    peopleCount: people,
  })
}

const ofTeacher = (
  all: readonly Candidate[],
  weight: number | undefined,
): Omit<Candidate, "teacherWeight">[] =>
  all.flatMap(({ teacherWeight, ...own }) => (teacherWeight === weight ? [own] : []))

test("each fit takes time: where no text has fields there are fourteen, whatever the number of rows", () => {
  expect(candidatesFor({ people: 60 })).toHaveLength(14)
  expect(candidatesFor({ people: 5_000 })).toHaveLength(14)
})

test("with fields and many rows about every second one is fitted", () => {
  const [few, many] = [60, 5_000].map((people) => candidatesFor({ people, fields: 4 }).length)
  expect(many).toBeLessThan(0.65 * (few ?? 0))
})

test("a teacher's labels are learnt from by every head, and say nothing of how sure the model may be", () => {
  const all = candidatesFor({ people: 60, teacher: 200 })
  const own = ofTeacher(all, undefined)
  expect(ofTeacher(all, 1)).toEqual(own.filter(({ reads }) => reads !== "nothing" && reads !== "confidence"))
  expect(ofTeacher(all, 0.3)).toEqual(ofTeacher(all, 1))
})
