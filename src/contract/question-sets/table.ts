/** The endpoints of question sets. */
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
}
export type QuestionSetTable = typeof questionSetTable
