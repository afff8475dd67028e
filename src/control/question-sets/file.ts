/** A question set as a YAML file. */
import { createRequire } from "node:module"
import type * as Yaml from "yaml"
import { later } from "../../base/memo.ts"
import { task } from "../../base/peer/threads.ts"
import { check, problemsMax } from "../../contract/check.ts"
import { Fault } from "../../contract/errors.ts"
import { type QuestionSetContent, QuestionSetFile } from "../../contract/question-sets/content.ts"

/** Loaded for the first file. */
const yaml = later((): typeof Yaml => createRequire(import.meta.url)("yaml"))

const schemaComment = "# yaml-language-server: $schema="

/**
 * What has its default is left out, so that a file stays as short as it was written. What was taught is not in the file: it
 * belongs to this installation, and stays with every question that is pushed back unchanged.
 */
export function writeFile(
  set: { readonly name: string; readonly description: string },
  content: QuestionSetContent,
  schemaUrl: string,
): string {
  const { model, questions, calibration } = content
  const file = {
    name: set.name,
    ...(set.description === "" ? {} : { description: set.description }),
    model,
    ...(calibration ? { calibration } : {}),
    questions: questions.map(
      ({ threshold, below, target_accuracy, calibration: own, artefact: _artefact, ...asked }) => ({
        ...asked,
        ...(threshold === null ? {} : { threshold }),
        ...(below === "abstain" ? {} : { below }),
        ...(target_accuracy === null ? {} : { target_accuracy }),
        ...(own ? { calibration: own } : {}),
      }),
    ),
  }
  return `${schemaComment}${schemaUrl}\n${yaml().stringify(file, { lineWidth: 100 })}`
}

/** Takes seconds for the largest file, so it is run in a thread. Throws Fault `invalid_body`. */
export const readFileTask = task(import.meta.url, readFile)

export function readFile(text: string): QuestionSetFile {
  const found = parsed(text)
  const checked = check(QuestionSetFile, found, text.length)
  if (checked.success) return checked.data
  const details = checked.error.issues
    .slice(0, problemsMax)
    .map(({ path, message }) => ({ path: path.join("."), message }))
  const first = details[0]
  throw new Fault("invalid_body", `Cannot use the file: ${first?.path || "its top"}: ${first?.message}`, {
    details,
  })
}

function parsed(text: string): unknown {
  try {
    // The package compares every key with every other: minutes for a file of small keys.
    const document = yaml().parseDocument(text, { strict: true, uniqueKeys: false })
    if (document.errors[0]) throw document.errors[0]
    refuseRepeatedKeys(document)
    // Aliases would let a small file stand for a huge one.
    return document.toJS({ maxAliasCount: 0 })
  } catch (cause) {
    throw new Fault("invalid_body", `Cannot use the file: it is not YAML: ${firstLine(cause)}`, { cause })
  }
}

function refuseRepeatedKeys(document: Yaml.Document.Parsed): void {
  const { isScalar, visit } = yaml()
  visit(document, {
    Map(_, { items }) {
      const seen = new Set<unknown>()
      for (const { key } of items) {
        if (!isScalar(key)) continue
        if (seen.has(key.value)) throw new Error(`the key ${String(key.value)} is there twice`)
        seen.add(key.value)
      }
    },
  })
}

const firstLine = (cause: unknown): string =>
  (cause instanceof Error ? cause.message : String(cause)).split("\n", 1)[0] ?? ""
