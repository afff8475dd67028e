/** How counts read in texts for people. */

export const counted = (value: number): string => value.toLocaleString("en-US")

/** "1 row", "2 rows"; the plural is given where it is not the word with an s. */
export const plural = (count: number, one: string, many = `${one}s`): string =>
  `${counted(count)} ${count === 1 ? one : many}`
