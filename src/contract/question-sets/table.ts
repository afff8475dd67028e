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
  cancelQuestionSetJob,
  checkQuestionSet,
  getQuestionSetArtefact,
  getQuestionSetJob,
  getQuestionSetShadowReport,
  listQuestionSetJobs,
  runQuestionSetComparison,
  teachQuestionSet,
} from "./jobs.ts"
import { getQuestionSetMonitoring } from "./monitoring.ts"
import { reviewTable } from "./review.ts"
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
  teachQuestionSet,
  checkQuestionSet,
  runQuestionSetComparison,
  listQuestionSetJobs,
  getQuestionSetJob,
  cancelQuestionSetJob,
  getQuestionSetArtefact,
  getQuestionSetShadowReport,
  getQuestionSetMonitoring,
  ...reviewTable,
}
export type QuestionSetTable = typeof questionSetTable
