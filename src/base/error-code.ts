/** The code that Node.js gives its errors, such as ENOENT, and libraries give theirs; undefined where there is none. */
export const errorCode = (error: unknown): unknown =>
  error instanceof Error && "code" in error ? error.code : undefined
