/** The API as the console calls it: the contract's own client, with the session cookie. */
import { QueryCache, QueryClient, useMutation, useQueryClient } from "@tanstack/react-query"
import { useRef } from "react"
import { type Client, ClientError, createClient } from "../../src/contract/client.ts"
import { csrfHeaders, watchedFetch } from "./connection.ts"
import { withIdempotencyKeys } from "./idempotency.ts"
import { problemWords, problemsOf } from "./parts/refusal-words.ts"
import { t } from "./i18n/translate.ts"

export { ClientError }

export const api: Client = createClient(location.origin, csrfHeaders, withIdempotencyKeys(watchedFetch))

const retriesMax = 2

/** What was refused will be refused again; what did not arrive may arrive. */
export function createQueries(): QueryClient {
  return new QueryClient({
    queryCache: new QueryCache(),
    defaultOptions: {
      queries: {
        staleTime: 10_000,
        retry: (failures, error) => !(error instanceof ClientError) && failures < retriesMax,
      },
    },
  })
}

/** Any failure as a sentence for the person who caused it. */
export function sentenceOf(error: unknown): string {
  if (error instanceof ClientError) return withDetails(error)
  if (error instanceof DOMException && error.name === "AbortError") return t("Cancelled.")
  return error instanceof Error ? error.message : String(error)
}

/** A schema's refusal names fields as programs do; any other sentence names the first offending field itself. */
function withDetails({ message, body }: ClientError): string {
  const problems = problemsOf(body)
  const isOfSchema = problems.length > 0 && /^Cannot use the (?:body|query): /.test(message)
  const [first = "", ...others] = problems.map(problemWords)
  return [isOfSchema ? first : message, ...others].join("; ")
}

/** A write that refreshes the lists it changes. While it runs, further clicks are ignored. */
export function useWrite<Input, Output>(
  write: (input: Input) => Promise<Output>,
  refreshes: readonly (readonly unknown[])[],
  done?: (output: Output) => void,
) {
  const queries = useQueryClient()
  // A second click can come before React has drawn the first one's disabled button.
  const running = useRef(false)
  const mutation = useMutation({
    mutationFn: write,
    onSuccess: async (output) => {
      done?.(output)
      await Promise.all(refreshes.map((queryKey) => queries.invalidateQueries({ queryKey: [...queryKey] })))
    },
    onSettled: () => {
      running.current = false
    },
  })
  const mutate = (input: Input): void => {
    if (running.current) return
    running.current = true
    mutation.mutate(input)
  }
  return { ...mutation, mutate }
}
