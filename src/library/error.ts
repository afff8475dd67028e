/** What the library throws; apart, since the declarations of the package import nothing of the engine. */

/** Every failure: a code of docs/errors.md, or `closed`, and a sentence. */
export class UmpireError extends Error {
  override readonly name = "UmpireError"
  readonly code: string

  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}
