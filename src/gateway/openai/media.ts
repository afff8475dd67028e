/**
 * Images and files in requests of all three wires: text of files is read as text, and what only a model that sees can read goes to it
 * as it came.
 */
import type { Model } from "../../base/catalog.ts"
import { Fault } from "../../contract/errors.ts"
import type { GenerateWork, Media } from "../../engine/engine.ts"

/** A part that is no text, as chat and Responses have it. */
type MediaPart =
  | { readonly type: "image_url"; readonly image_url: ImageUrl }
  | {
      readonly type: "input_image"
      readonly image_url?: string | null | undefined
      readonly detail?: unknown
    }
  | { readonly type: "file"; readonly file: FileFields }
  | ({ readonly type: "input_file" } & FileFields)

interface ImageUrl {
  readonly url: string
  readonly detail?: unknown
}

interface FileFields {
  readonly file_data?: string | null | undefined
  readonly filename?: string | null | undefined
}

/** The text of a message, and what it shows between. */
export interface Shown {
  readonly content: string
  readonly media?: readonly Media[]
}

export class ShownText {
  #content = ""
  readonly #media: Media[] = []

  text(text: string): void {
    this.#content += text
  }

  add(part: MediaPart): void {
    switch (part.type) {
      case "image_url":
        return this.image(part.image_url)
      case "input_image":
        return this.image({ url: part.image_url ?? "", detail: part.detail })
      case "file":
        return this.file(part.file)
      case "input_file":
        return this.file(part)
    }
  }

  image({ url, detail }: ImageUrl): void {
    const image_url = { url, ...(typeof detail === "string" ? { detail } : {}) }
    this.#show("image", isAddress(url), { type: "image_url", image_url })
  }

  file({ file_data, filename }: FileFields): void {
    if (typeof file_data !== "string")
      throw new Fault(
        "invalid_request",
        "Cannot use the file: send its bytes as file_data; addresses and ids are not read",
        {
          param: "file_data",
        },
      )
    const text = textIn(file_data)
    const name = typeof filename === "string" ? { filename } : {}
    if (text === null) this.#show("file", false, { type: "file", file: { file_data, ...name } })
    else this.#content += text
  }

  #show(kind: Media["kind"], isRemote: boolean, part: Media["part"]): void {
    this.#media.push({ kind, at: this.#content.length, isRemote, part })
  }

  get shown(): Shown {
    const media = this.#media
    return { content: this.#content, ...(media.length === 0 ? {} : { media }) }
  }
}

/** Whether it is to be fetched. Plain http and other addresses are never handed on. */
function isAddress(url: string): boolean {
  if (/^data:/i.test(url)) return false
  if (/^https:\/\//i.test(url)) return true
  throw new Fault(
    "invalid_request",
    "Cannot use the image: send it as a data: URL, or as an https address to a model whose workers fetch; ids of files are not read",
    { param: "image_url" },
  )
}

/** A message's content, whose parts may be texts, refusals and what is no text. */
export function shownOf(
  content: string | readonly (MediaPart | { readonly text: string } | { readonly refusal: string })[],
): Shown {
  if (typeof content === "string") return { content }
  const shown = new ShownText()
  for (const part of content) {
    if ("text" in part) shown.text(part.text)
    else if ("refusal" in part) shown.text(part.refusal)
    else shown.add(part)
  }
  return shown.shown
}

const utf8 = new TextDecoder("utf-8", { fatal: true })

/** What a file says, where it is text; null where it is not. */
function textIn(data: string): string | null {
  const encoded = data.startsWith("data:") ? data.slice(data.indexOf(",") + 1) : data
  const bytes = Buffer.from(encoded, "base64")
  if (bytes.length === 0 || bytes.includes(0) || bytes.subarray(0, 5).toString("latin1") === "%PDF-")
    return null
  try {
    return utf8.decode(bytes)
  } catch {
    return null
  }
}

/** Those of the models that can read the work. Throws Fault `invalid_request` where none can. */
export function readersOf(
  models: readonly [Model, ...Model[]],
  { messages }: GenerateWork,
): readonly [Model, ...Model[]] {
  const media = messages.flatMap((message) => message.media ?? [])
  if (media.length === 0) return models
  const [first, ...others] = models.filter((model) => media.every((one) => reads(model, one)))
  if (first) return [first, ...others]
  const [{ sku, inputModalities = [] }] = models
  const unread = media.find(({ kind }) => !inputModalities.includes(kind))
  const why = unread
    ? `the model ${sku} does not read ${unread.kind === "image" ? "images" : "files that are not text"}`
    : `the workers of the model ${sku} fetch nothing; send images and files as data: URLs`
  throw new Fault("invalid_request", `Cannot run the request: ${why}`, { param: "model" })
}

const reads = ({ inputModalities = [], fetchesUrls = false }: Model, { kind, isRemote }: Media): boolean =>
  inputModalities.includes(kind) && (fetchesUrls || !isRemote)
