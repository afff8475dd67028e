/**
 * Commands whose first argument names an action. Most actions are described, not written: which endpoint of the table they
 * call, which arguments and options are its parameters and fields, and how its answer is drawn. What an option takes is what
 * the schema of its field takes.
 */
import { z } from "zod"
import type { OperatorClient, Client } from "../contract/client.ts"
import type { Endpoint, OutputOf } from "../contract/endpoint.ts"
import { type OperatorTable, operatorTable } from "../contract/operator.ts"
import { type Table, table } from "../contract/table.ts"
import { connectApi, everyPage } from "./api-client.ts"
import {
  type CliContext,
  type CliOption,
  type Command,
  UsageError,
  flagOption,
  organizationOption,
  show,
  text,
  manyOf,
  numberOf,
  numbersBetween,
  oneOf,
  texts,
  wholeNumbersFrom,
} from "./command.ts"
import type { Operator } from "./operator.ts"
import { apiOptions } from "./server-options.ts"

/** Whom the actions of a command call. */
interface Connection<Api> {
  readonly client: Api
  /** The one that an option names, or the only one there is. */
  readonly organizationId: () => Promise<string>
}

/** Reads what was given, then connects. Answers the exit status. */
export type Action<Api> = (context: CliContext, connect: () => Promise<Connection<Api>>) => Promise<number>

interface Described<Api> {
  readonly usage: readonly string[]
  readonly options?: Readonly<Record<string, CliOption>>
  /** In the order in which they are named to a user who names none. */
  readonly actions: Readonly<Record<string, Action<Api>>>
  /** What a command without an action does. */
  readonly actionDefault?: string
}

export type OpenOperator = (context: CliContext) => Promise<Operator>

const json: CliOption = flagOption("print JSON")

/** A command of the operator. Actions in an organization take its option. */
export const operatorCommand =
  (described: Described<OperatorClient> & { readonly inOrganization?: true }) =>
  (open: OpenOperator): Command => {
    const { usage, options, inOrganization } = described
    return {
      usage,
      options: { ...options, ...(inOrganization ? { organization: organizationOption } : {}), json },
      run: async (context) => {
        let operator: Operator | undefined
        const connect = async (): Promise<Connection<OperatorClient>> => {
          const { client } = (operator ??= await open(context))
          return { client, organizationId: async () => await operatorOrganization(context, client) }
        }
        try {
          return await act(described, context, connect)
        } finally {
          await operator?.close()
        }
      },
    }
  }

/** The named organization, or the only one there is. */
async function operatorOrganization(context: CliContext, client: OperatorClient): Promise<string> {
  const named = text(context, "organization")
  if (named !== undefined) return named
  const [only, another] = await client.listAllOrganizations()
  if (!only) throw new UsageError("there is no organization yet: start the server once first")
  if (another) throw new UsageError("there are several organizations: name one with --organization")
  return only.id
}

/** A command that acts in an organization by an API key. */
export function apiCommand(described: Described<Client>): Command {
  return {
    usage: described.usage,
    options: { ...described.options, ...apiOptions, ...described.options },
    run: async (context) => {
      const connect = async (): Promise<Connection<Client>> => {
        const { client, organizationId } = await connectApi(context)
        return { client, organizationId: async () => organizationId }
      }
      return await act(described, context, connect)
    },
  }
}

async function act<Api>(
  { actions, actionDefault }: Described<Api>,
  context: CliContext,
  connect: () => Promise<Connection<Api>>,
): Promise<number> {
  const name = context.positionals[0] ?? actionDefault
  const action = name !== undefined && Object.hasOwn(actions, name) ? actions[name] : undefined
  if (!action) throw new UsageError(`say ${either(Object.keys(actions))}`)
  return await action(context, connect)
}

const either = (names: readonly string[]): string =>
  names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} or ${names.at(-1)}`

type InputOf<E extends Endpoint> =
  z.input<E["body"]> extends undefined ? z.input<E["query"]> : z.input<E["body"]>

type FieldName<E extends Endpoint> = Extract<keyof InputOf<E>, string>

/** A list that comes in pages is drawn whole. */
type ShownOf<E extends Endpoint> =
  OutputOf<E> extends { data: infer Items; next_cursor: string | null } ? Items : OutputOf<E>

interface CallDescription<E extends Endpoint> {
  /** By name of a path parameter or field, in order: what is asked where the argument is missing; null where it may be. */
  readonly args?: Readonly<Record<string, string | null>>
  /** Options that are fields of the body, or parameters of the query. */
  readonly fields?: FieldsOf<FieldName<E>>
  /** Fields that are more than the value of an option. */
  readonly input?: (context: CliContext) => object | Promise<object>
  /** Only the first page, of so many entries. */
  readonly first?: number
  /** What is printed with --json, where that is not the answer. */
  readonly json?: (args: Readonly<Record<string, string>>) => unknown
  readonly draw: (output: ShownOf<E>, args: Readonly<Record<string, string>>, context: CliContext) => string
  readonly status?: (output: ShownOf<E>) => number
}

type Loose = (request: object) => Promise<unknown>

const callsOf =
  <Endpoints extends { [Name in keyof Endpoints]: Endpoint }, Api>(endpoints: Endpoints) =>
  <Name extends keyof Endpoints & keyof Api>(
    name: Name,
    description: CallDescription<Endpoints[Name]>,
  ): Action<Api> =>
  async (context, connect) => {
    const endpoint = endpoints[name]
    const args = readArgs(context, description.args ?? {})
    const input = await inputOf(context, endpoint, { ...description, given: args })
    const { client, organizationId } = await connect()
    const params = {
      ...(isParam(endpoint, "org_id") && !("org_id" in args) ? { org_id: await organizationId() } : {}),
      ...Object.fromEntries(Object.entries(args).filter(([arg]) => isParam(endpoint, arg))),
    }
    // The client has a function of this name, which takes what the schemas of its endpoint read.
    const call = client[name] as Loose
    const output = (await callWhole(call, endpoint, { params, input, first: description.first })) as ShownOf<
      Endpoints[Name]
    >
    show(context, description.json ? description.json(args) : output, () =>
      description.draw(output, args, context),
    )
    return description.status?.(output) ?? 0
  }

/** An action that calls one endpoint of the operator. */
export const operates = callsOf<OperatorTable, OperatorClient>(operatorTable)
/** An action that calls one endpoint of the API. */
export const calls = callsOf<Table, Client>(table)

function readArgs(
  { positionals }: CliContext,
  asked: Readonly<Record<string, string | null>>,
): Record<string, string> {
  const found = Object.entries(asked).map(([name, question], at) => {
    const value = positionals[at + 1]
    if (!value && question !== null) throw new UsageError(question)
    return [name, value] as const
  })
  return Object.fromEntries(found.flatMap(([name, value]) => (value ? [[name, value] as const] : [])))
}

interface InputParts {
  readonly given: Readonly<Record<string, string>>
  readonly fields?: FieldsOf<string>
  readonly input?: (context: CliContext) => object | Promise<object>
}

/** Arguments that are no parameters of the path are fields. */
async function inputOf(
  context: CliContext,
  endpoint: Endpoint,
  parts: InputParts,
): Promise<Record<string, unknown>> {
  const { given, fields = {}, input } = parts
  const schema = hasBody(endpoint) ? endpoint.body : endpoint.query
  const own = Object.entries(given).filter(([name]) => !isParam(endpoint, name))
  return { ...Object.fromEntries(own), ...readFields(context, schema, fields), ...(await input?.(context)) }
}

const isParam = ({ path }: Endpoint, name: string): boolean => path.includes(`{${name}}`)

const hasBody = ({ method }: Endpoint): boolean => method !== "GET" && method !== "DELETE"

interface WholeCall {
  readonly params: object
  readonly input: Record<string, unknown>
  readonly first: number | undefined
}

async function callWhole(
  call: Loose,
  endpoint: Endpoint,
  { params, input, first }: WholeCall,
): Promise<unknown> {
  if (endpoint.wrap !== "none" || hasBody(endpoint))
    return await call({ params, ...(hasBody(endpoint) ? { body: input } : { query: input }) })
  const read = async (page: object) =>
    // Every endpoint that brings its own wrapping is a page of a list.
    (await call({ params, query: { ...input, ...page } })) as Awaited<
      ReturnType<Parameters<typeof everyPage>[0]>
    >
  return first === undefined ? await everyPage(read) : (await read({ limit: first })).data
}

/** By option: the name of its field where that is another, and what is asked where the field is needed and not given. */
type FieldsOf<Name extends string> = Readonly<Record<string, Name | FieldGiven<Name>>>

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
