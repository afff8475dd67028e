/** Options of a command as fields of an endpoint's input: what an option takes is what the schema of its field takes. */
import { z } from "zod"
import {
  type CliContext,
  UsageError,
  manyOf,
  numberOf,
  numbersBetween,
  oneOf,
  text,
  texts,
  wholeNumbersFrom,
} from "./command.ts"

/** By option: the name of its field where that is another, and what is asked where the field is needed and not given. */
export type FieldsOf<Name extends string> = Readonly<Record<string, Name | FieldGiven<Name>>>

interface FieldGiven<Name extends string> {
  readonly field: Name
  readonly ask: string
}

/** What is not given is left out. */
export function readFields(
  context: CliContext,
  schema: z.ZodType,
  options: FieldsOf<string>,
): Record<string, unknown> {
  const shape: Readonly<Record<string, z.ZodType>> = schema instanceof z.ZodObject ? schema.shape : {}
  const given = Object.entries(options).flatMap(([option, named]) => {
    const { field, ask } = typeof named === "string" ? { field: named, ask: null } : named
    const value = readField(context, option, shape[field] ?? z.string())
    if (value === undefined && ask !== null) throw new UsageError(ask)
    return value === undefined ? [] : [[field, value] as const]
  })
  return Object.fromEntries(given)
}

function readField(context: CliContext, option: string, schema: z.core.$ZodType): unknown {
  const kind = plainSchema(schema)
  if (kind instanceof z.ZodArray) return readList(context, option, plainSchema(kind.element))
  if (kind instanceof z.ZodEnum) return oneOf(context, option, wordsOf(kind))
  if (kind instanceof z.ZodNumber) return numberOf(context, option, numbersOf(kind))
  if (kind instanceof z.ZodBoolean) return context.values[option] === true || undefined
  return text(context, option)
}

function readList(context: CliContext, option: string, element: z.core.$ZodType): string[] | undefined {
  if (texts(context, option).length === 0) return undefined
  return element instanceof z.ZodEnum ? manyOf(context, option, wordsOf(element)) : texts(context, option)
}

const wordsOf = ({ options }: z.ZodEnum): string[] => options.map(String)

const numbersOf = ({ minValue, maxValue, format }: z.ZodNumber) => {
  const [min, max] = [minValue ?? -Infinity, maxValue ?? Infinity]
  return format === "safeint" ? wholeNumbersFrom(min, max) : numbersBetween(min, max)
}

/** Without what makes it optional or gives it a default. */
function plainSchema(schema: z.core.$ZodType): z.core.$ZodType {
  if (
    schema instanceof z.ZodOptional ||
    schema instanceof z.ZodNullable ||
    schema instanceof z.ZodDefault ||
    schema instanceof z.ZodPrefault
  )
    return plainSchema(schema.unwrap())
  return schema instanceof z.ZodPipe ? plainSchema(schema.in) : schema
}
