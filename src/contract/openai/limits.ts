/** The most that one request of the OpenAI-compatible endpoints holds; without zod, for the engine too. */

/** Messages or items of one request: chat templates take time that grows with them, however short they are. */
export const itemsMax = 2048
/** Of an id or another word in a query. */
export const idCharactersMax = 512
/** What a query asks to be included. */
export const includesMax = 64
/** Parts of one message. */
export const partsMax = 1024
/** Calls of one assistant's message. */
export const callsMax = 256
/** Text of one request, without its images and files: two million tokens, which no model reads. */
export const textCharactersMax = 8 * 1024 * 1024
