/** Makes a batch of decisions from a table, and keeps the table beside it. */
import type { BatchObject } from "../../../src/contract/openai/batches.ts"
import { api } from "../api.ts"
import { deleteFile, organizationHeader, uploadFile } from "./batch-files.ts"
import { writeSheet } from "./sheet.ts"
import { type TableBatch, endpoint, linesOf } from "./table-lines.ts"

const metadataCharactersMax = 512

export async function startBatch(orgId: string, batch: TableBatch): Promise<BatchObject> {
  const { name, rows, evidence, asked, labelling } = batch
  const { model, questions } = asked
  const sheet = writeSheet({ ...rows, name, evidence, model, questions: [...questions], labelling })
  const files: string[] = []
  const upload = async (purpose: "batch" | "user_data", content: string, kind: string): Promise<string> => {
    const file = { name: `${name}.${kind}`, content: new Blob([content]), purpose }
    const { id } = await uploadFile(orgId, file)
    files.push(id)
    return id
  }
  try {
    const input_file_id = await upload("batch", linesOf(batch), "requests.jsonl")
    const sheet_file_id = await upload("user_data", sheet, "sheet.json")
    return await api.createBatch({
      headers: organizationHeader(orgId),
      body: {
        input_file_id,
        endpoint,
        completion_window: "24h",
        metadata: {
          kind: labelling ? "evaluation" : "table",
          name: name.slice(0, metadataCharactersMax),
          model,
          question: questions
            .map(({ instructions }) => instructions)
            .join(" · ")
            .slice(0, metadataCharactersMax),
          sheet_file_id,
          ...(batch.comparedWith === undefined ? {} : { compared_with: batch.comparedWith }),
        },
      },
    })
  } catch (error) {
    // What was uploaded for nothing; where it stays, it expires.
    await Promise.allSettled(files.map(async (id) => await deleteFile(orgId, id)))
    throw error
  }
}
