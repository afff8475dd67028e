/** The wire of OpenAI's Files API: what is uploaded for batches, and what batches answer. */
import { z } from "zod"
import { bodyText } from "../check.ts"
import { inference } from "../endpoint-group.ts"
import { endpoint, namedObject } from "../endpoint.ts"
import { listFields } from "./parameters.ts"

const base = { area: "Batches", surface: "openai", access: inference } as const

const filePurposes = ["batch", "user_data"] as const
/** What a server makes itself cannot be uploaded. */
const shownPurposes = [...filePurposes, "batch_output"] as const

export const FileObject = namedObject("File", {
  id: z.string(),
  object: z.literal("file"),
  bytes: z.int(),
  created_at: z.int(),
  expires_at: z.int().nullable(),
  filename: z.string(),
  purpose: z.enum(shownPurposes),
  status: z.literal("processed"),
  status_details: z.null(),
  /** In hexadecimal. */
  sha256: z.string(),
})
export type FileObject = z.infer<typeof FileObject>

const FileList = namedObject("FileList", listFields(FileObject))

/** An hour to thirty days after its upload, as OpenAI bounds it. */
const fileExpirySeconds = { min: 3_600, max: 2_592_000 } as const

/** The fields of the form beside `file`. */
export const FileFields = z.strictObject({
  purpose: z.enum(filePurposes),
  "expires_after[anchor]": z.literal("created_at").optional(),
  "expires_after[seconds]": z.coerce
    .number()
    .int()
    .min(fileExpirySeconds.min)
    .max(fileExpirySeconds.max)
    .optional(),
})
export type FileFields = z.infer<typeof FileFields>

const oneFile = { params: z.object({ file_id: z.string().min(1).max(128) }) }

/** The most that the configuration can allow, with room for the form around the file. */
const uploadBytesMax = 17 * 1024 * 1024 * 1024

export const fileEndpoints = {
  createFile: endpoint({
    ...base,
    method: "POST",
    path: "/v1/files",
    summary: "Upload a file; a form with the fields `file` and `purpose`",
    body: bodyText(),
    reads: "stream",
    consumes: ["multipart/form-data"],
    bodyBytesMax: uploadBytesMax,
    output: FileObject,
    errors: [
      "invalid_request",
      "not_json",
      "unsupported_encoding",
      "body_over_limit",
      "overloaded",
      "storage_full",
    ],
  }),
  listFiles: endpoint({
    ...base,
    method: "GET",
    path: "/v1/files",
    summary: "List files",
    query: z.object({
      limit: z.coerce.number().int().min(1).max(10_000).default(1_000),
      order: z.enum(["asc", "desc"]).default("desc"),
      after: z.string().max(128).optional(),
      purpose: z.string().max(64).optional(),
    }),
    output: FileList,
    errors: ["invalid_query"],
  }),
  getFile: endpoint({
    ...base,
    ...oneFile,
    method: "GET",
    path: "/v1/files/{file_id}",
    summary: "Read what is known of a file",
    output: FileObject,
    errors: ["not_found"],
  }),
  getFileContent: endpoint({
    ...base,
    ...oneFile,
    method: "GET",
    path: "/v1/files/{file_id}/content",
    summary: "Download a file",
    output: z.never(),
    produces: "application/octet-stream",
    errors: ["not_found", "not_ready"],
  }),
  deleteFile: endpoint({
    ...base,
    ...oneFile,
    method: "DELETE",
    path: "/v1/files/{file_id}",
    summary: "Delete a file",
    output: z.object({ id: z.string(), object: z.literal("file"), deleted: z.literal(true) }),
    errors: ["not_found"],
  }),
}
