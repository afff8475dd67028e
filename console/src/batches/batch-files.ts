/** Files of batches: uploaded as a form, and read back. */
import type { FileObject } from "../../../src/contract/openai/files.ts"
import { ClientError, api } from "../api.ts"
import { csrfHeaders, watchedFetch } from "../connection.ts"
import { t } from "../i18n/translate.ts"

export const organizationHeader = (orgId: string): Record<string, string> => ({
  "x-umpire-organization": orgId,
})

interface NewFile {
  readonly name: string
  readonly content: Blob
  readonly purpose: "batch" | "user_data"
}

export async function uploadFile(orgId: string, { name, content, purpose }: NewFile): Promise<FileObject> {
  const form = new FormData()
  form.append("purpose", purpose)
  form.append("file", content, name)
  const headers = { ...csrfHeaders, ...organizationHeader(orgId) }
  const response = await watchedFetch("/v1/files", { method: "POST", headers, body: form })
  const body: unknown = await response.json()
  if (response.ok) return body as FileObject
  // The form of every refusal.
  const { error } = (body ?? {}) as { error?: { code?: string; message?: string } }
  const message = error?.message ?? t("The server answered {status}", { status: response.status })
  throw new ClientError(response.status, error?.code ?? null, message, body)
}

export async function readFile(orgId: string, file_id: string): Promise<Uint8Array<ArrayBuffer>> {
  const content: unknown = await api.getFileContent({
    params: { file_id },
    headers: organizationHeader(orgId),
  })
  // The client answers a document where an endpoint says that it produces one.
  return (content as { readonly bytes: Uint8Array<ArrayBuffer> }).bytes
}

export async function deleteFile(orgId: string, file_id: string): Promise<void> {
  await api.deleteFile({ params: { file_id }, headers: organizationHeader(orgId) })
}
