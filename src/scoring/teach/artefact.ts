/** What teaching a question leaves behind: plain JSON, small enough to be loaded by every gateway. */
import type { FeatureKind } from "./features.ts"
import type { JudgedAnswer } from "./promise.ts"
import type { QuestionKind } from "./question.ts"
import type { WeighedRule } from "./rules.ts"

/** What an answer is made of, from the simplest up. */
export type Form = "zero_shot" | "temperature" | "option_bias" | "head" | "words" | "head_and_words"

/** With its 95 % confidence interval. */
export interface Interval {
  readonly value: number
  readonly low: number
  readonly high: number
}

export interface Figures {
  readonly rows: number
  readonly accuracy: Interval
  readonly calibrationError: Interval
  readonly brier: Interval
}

export interface BeforeAndAfter {
  /** Of the model's own answers. */
  readonly before: Figures
  readonly after: Figures
}

/** What a form got in cross-validation, and how much it counts in what is taught. */
export interface FormScore {
  readonly form: Form
  readonly logLoss: number
  readonly standardError: number
  /** Absent in version 1, where one form was chosen. */
  readonly weight?: number
}

export interface LearningPoint {
  /** Labels that were learnt from. */
  readonly rows: number
  /** Over rows that were not learnt from. */
  readonly accuracy: Interval
  readonly judged: number
}

export interface Baselines {
  /** Accuracy of always giving the most frequent label. */
  readonly majority: number
  /** Of a random judge. */
  readonly random: number
  /** Of the model's answer to empty evidence; null when it was not asked. */
  readonly emptyEvidence: number | null
  /** The taught answers are not surely better than the best of these: the text may not matter for the question. */
  readonly answeredWithoutEvidence: boolean
}

/** The logit of an option is `priorWeight` times that of the calibrated margin, plus its bias, plus weights times vector. */
export interface ArtefactParameters {
  readonly temperature: number
  readonly bias: number
  readonly priorWeight: number
  /** One per option; none without a form that has them. */
  readonly optionBiases: readonly number[]
  /** Little-endian float32 in base64, by option; empty without a head. */
  readonly weights: string
  /** Of words, characters and fields; absent without any. */
  readonly words?: TaughtWords
}

/** Features by their hashes, as uint32, in the order of the columns; rarities and weights as float32, all little-endian in base64. */
export interface TaughtWords {
  readonly features: Readonly<Record<FeatureKind, string>>
  readonly rarities: string
  /** By option. */
  readonly weights: string
}

interface TaughtStage {
  readonly model: string
  readonly modelVersion: string
}

/** What was found for a question that the stages of a cascade answer. */
export interface TaughtCascade {
  readonly stages: readonly TaughtStage[]
  /** One for each stage but the last: an answer less probable is sent on. Null: the cascade's own are used. */
  readonly thresholds: readonly number[] | null
  /** One for each stage after the first; null: its answer replaces the first one's. */
  readonly blends: readonly (Blend | null)[]
}

/** Weights of the logarithms of the probabilities that two stages give. */
export interface Blend {
  readonly first: number
  readonly later: number
}

interface TaughtTeacher {
  readonly rows: number
  /** What one of its labels counts beside a person's, in the mean of what was taught. */
  readonly weight: number
}

export interface TaughtArtefact {
  readonly version: 1 | 2
  readonly kind: QuestionKind
  readonly options: readonly string[]
  /** Of the engine that gave margins and vectors: the numbers mean nothing for another. */
  readonly modelVersion: string
  /** 0 when applying it needs no vector. */
  readonly vectorSize: number
  readonly seed: number
  readonly examplesHash: string
  readonly rows: { readonly train: number; readonly heldOut: number }
  /** Where labels of another model were learnt from too. */
  readonly teacher?: TaughtTeacher
  /** What counts most. */
  readonly form: Form
  readonly parameters: ArtefactParameters
  readonly forms: readonly FormScore[]
  /** Over the training rows, each judged by heads that did not see it. */
  readonly crossValidated: BeforeAndAfter
  /** Over the rows that fitting never saw; null when there are none. */
  readonly heldOut: BeforeAndAfter | null
  readonly baselines: Baselines
  /**
   * Most confident first: what promises and curves are made of. Of the rows that were held out, or else of all rows, each judged
   * by heads that did not see it.
   */
  readonly heldOutAnswers: readonly JudgedAnswer[]
  /** In the order of the question's; absent without rules. */
  readonly rules?: readonly WeighedRule[]
  /** Accuracy with parts of the labels and all of them; absent before version 0.3. */
  readonly learning?: readonly LearningPoint[]
  /** Where the model of the set is a cascade. */
  readonly cascade?: TaughtCascade
  /** Sentences for people. */
  readonly notes: readonly string[]
}

// Written by teaching.
export const readArtefact = (body: string): TaughtArtefact => JSON.parse(body)

export function encodeFloats(values: Float64Array): string {
  const bytes = Buffer.alloc(values.length * 4)
  for (const [index, value] of values.entries()) bytes.writeFloatLE(value, index * 4)
  return bytes.toString("base64")
}

export function encodeHashes(hashes: Iterable<number>): string {
  const all = Uint32Array.from(hashes)
  const bytes = Buffer.alloc(all.length * 4)
  for (const [index, hash] of all.entries()) bytes.writeUInt32LE(hash, index * 4)
  return bytes.toString("base64")
}

export const decodeHashes = (text: string): Uint32Array => new Uint32Array(decodeWords(text))
export const decodeFloats = (text: string): Float32Array => new Float32Array(decodeWords(text))

/** As browsers can, too. Every machine that this runs on stores the lowest byte first. */
const decodeWords = (text: string): ArrayBuffer =>
  Uint8Array.from(atob(text), (character) => character.charCodeAt(0)).buffer
