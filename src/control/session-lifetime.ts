/** How long a console session is valid. */

const hourMs = 3_600_000

/** Unused for this long, a session ends. */
export const sessionIdleMs = 12 * hourMs
/** However busy it is. */
export const sessionMaxMs = 30 * 24 * hourMs
