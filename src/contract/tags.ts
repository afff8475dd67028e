/** Tags: the caller's own `key=value` on a request, so that requests and their cost can be attributed. */
import { z } from "zod"

/** Names the tags of a request: `team=ops,job=42`. */
export const tagsHeader = "x-umpire-tags"

export const tagLimits = { tagsMax: 16, keyCharactersMax: 64, valueCharactersMax: 128 } as const

export const tagKeyForm = /^[A-Za-z0-9_.-]{1,64}$/

/** `key`, `key=value`, or `key=` for requests without the tag. */
const tagFilterForm = /^[A-Za-z0-9_.-]{1,64}(=.*)?$/su

export const isTagFilter = (text: string): boolean => tagFilterForm.test(text)

export const TagFilter = z
  .string()
  .regex(tagFilterForm, {
    error: `a tag is key or key=value; a key has 1 to ${tagLimits.keyCharactersMax} of A-Z a-z 0-9 _ . -`,
  })
  .max(1024)
