/** Values that the Platform endpoints have in common: identifiers, texts, times, pages. */
import { z } from "zod"
import { permissions, roles } from "../access.ts"

/** An id in a path. What cannot be an id is not visible either, so it answers 404. */
export const PathId = z.string().regex(/^[\w.:-]{1,128}$/)

export const OrganizationPath = z.object({ org_id: PathId })

/** Text that people write. The store cannot hold U+0000, and no name needs control characters. */
export const Text = (charactersMax: number) =>
  z
    .string()
    .trim()
    .min(1)
    .max(charactersMax)
    // oxlint-disable-next-line no-control-regex -- these are the characters to refuse
    .regex(/^[^\u0000-\u001f\u007f]*$/, "control characters are not allowed")

/** The rule of HTML forms: the host may be one word, as in `owner@localhost` or on an intranet. */
export const EmailAddress = z.email({ pattern: z.regexes.html5Email }).max(254)

export const Datetime = z.iso.datetime()

export const UsdText = z
  .string()
  .regex(/^\d{1,8}(\.\d{1,10})?$/, "a decimal number of USD is needed, with at most 10 decimals")

/** A time that a caller gives, with any offset: the store holds the years 1 to 9999. */
export const GivenTime = z.iso
  .datetime({ offset: true })
  .refine((text) => isStorable(Date.parse(text)), { error: "a year from 1 to 9999 is needed" })

const [timeMsMin, timeMsMax] = [Date.parse("0001-01-01T00:00:00Z"), Date.parse("9999-12-31T23:59:59.999Z")]

export const isStorable = (unixMs: number): boolean => unixMs >= timeMsMin && unixMs <= timeMsMax

export const RoleName = z.enum(roles)
export const PermissionName = z.enum(permissions)

export const nameCharactersMax = 200

const pageItemsDefault = 50
const pageItemsMax = 200

/** The form of ids with this prefix. */
export const idForm = (prefix: string): RegExp => new RegExp(`^${prefix}_[0-9a-z]{26}$`)

/** An id with this prefix, in a path. */
export const IdWith = (prefix: string) => z.string().regex(idForm(prefix))

/** The query of a list that comes in pages; what cannot be a cursor of the list is refused. */
export const pageQuery = (cursorForm: RegExp) =>
  z.object({
    limit: z.coerce
      .number()
      .int()
      .min(1)
      .max(pageItemsMax)
      .default(pageItemsDefault)
      .describe("Most entries on the page."),
    cursor: z.string().regex(cursorForm).optional().describe("The `next_cursor` of the page before."),
  })

/** A page brings its own wrapping: `data` and where the next page begins. */
export const pageOf = <Item extends z.ZodType>(item: Item) =>
  z.object({ data: z.array(item), next_cursor: z.string().nullable().describe("Null on the last page.") })

/** When and by whom a thing was made and changed, and which version it is. */
export const changeFields = {
  created_by: z.string().nullable(),
  created_at: Datetime,
  updated_at: Datetime,
  version: z.int().describe("Counts the changes; `If-Match` takes it."),
}

/** What only the first answer shows. */
export const shownOnce = (what: string) =>
  z.string().nullable().describe(`${what} Shown once: null when the request is repeated.`)

/** A person, as others see them. */
export const Person = z
  .object({ id: z.string(), email: z.string(), name: z.string().nullable() })
  .meta({ id: "Person" })

/** What is searched for in texts: a line of them at most. */
export const SearchedText = z.string().trim().min(1).max(200)
