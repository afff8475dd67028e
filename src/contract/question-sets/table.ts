/** The endpoints of question sets. */
import {
  addQuestionSetCases,
  addQuestionSetExamples,
  deleteQuestionSetCase,
  deleteQuestionSetExample,
  listQuestionSetCases,
  listQuestionSetExamples,
  updateQuestionSetExample,
  uploadQuestionSetExamples,
} from "./examples.ts"
import {
  compareQuestionSetVersions,
  createQuestionSet,
  deleteQuestionSet,
  deleteQuestionSetLabel,
  exportQuestionSet,
  getQuestionSet,
  getQuestionSetVersion,
  importQuestionSet,
  listQuestionSetVersions,
  listQuestionSets,
  putQuestionSetLabel,
  updateQuestionSet,
} from "./sets.ts"

/** Those that `control` handles. */
export const questionSetTable = {
  listQuestionSets,
  createQuestionSet,
  importQuestionSet,
  getQuestionSet,
  updateQuestionSet,
  deleteQuestionSet,
  listQuestionSetVersions,
  getQuestionSetVersion,
  compareQuestionSetVersions,
  putQuestionSetLabel,
  deleteQuestionSetLabel,
  exportQuestionSet,
  listQuestionSetExamples,
  addQuestionSetExamples,
  uploadQuestionSetExamples,
  updateQuestionSetExample,
  deleteQuestionSetExample,
  listQuestionSetCases,
  addQuestionSetCases,
  deleteQuestionSetCase,
}
export type QuestionSetTable = typeof questionSetTable
