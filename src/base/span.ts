/** Spans of a trace: what the code tells of its steps. Nothing is made or kept unless a tracer is given. */
import { AsyncLocalStorage } from "node:async_hooks"

export type SpanKind = "server" | "client" | "internal"
export type Attributes = Readonly<Record<string, string | number | boolean | readonly string[] | null>>

export interface Span {
  readonly traceId: string
  readonly spanId: string
  /** The W3C headers that make what another server does a part of this span. */
  readonly headers: Readonly<Record<string, string>>
  child(name: string, kind?: SpanKind): Span
  rename(name: string): void
  /** A null is left out. */
  set(attributes: Attributes): void
  /** By the code of an error; messages may quote what was sent. */
  fail(code: string): void
  end(): void
}

export interface Tracer {
  /** A span that goes on with the caller's trace where its headers name one. */
  begin(name: string, kind: SpanKind, header: (name: string) => string | null): Span
}

const active = new AsyncLocalStorage<Span>()

/** The span that the present work belongs to. */
export const activeSpan = (): Span | undefined => active.getStore()

export function withSpan<Result>(span: Span | undefined, work: () => Result): Result {
  return span ? active.run(span, work) : work()
}
