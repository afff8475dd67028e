/** A stateful stand-in for Stripe's API over HTTP: keeps customers and payments, and can lose, delay and repeat things. */
import { createHmac, randomUUID } from "node:crypto"
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"

/** What a card does when it is charged; by the id of the payment method. */
export const cards = {
  good: "pm_good",
  declined: "pm_declined",
  confirm: "pm_confirm",
  slow: "pm_slow",
} as const

interface Intent {
  id: string
  object: "payment_intent"
  amount: number
  currency: string
  customer: string
  created: number
  status: string
  metadata: Record<string, string>
  last_payment_error: { code: string; message: string } | null
}

interface FakeCustomer {
  id: string
  object: "customer"
  email: string
  metadata: Record<string, string>
  invoice_settings: { default_payment_method: FakeMethod | null }
}

interface FakeMethod {
  id: string
  object: "payment_method"
  type: "card"
  customer: string | null
  card: { brand: string; last4: string }
}

export interface StripeEvent {
  readonly id: string
  readonly body: string
}

interface Answer {
  readonly status: number
  readonly body: unknown
}

type Form = Record<string, string>

export class StripeFake {
  readonly customers = new Map<string, FakeCustomer>()
  readonly methods = new Map<string, FakeMethod>()
  readonly intents = new Map<string, Intent>()
  /** In the order in which they happened; a test delivers them as it likes. */
  readonly events: StripeEvent[] = []
  readonly requests: string[] = []
  /** The `Authorization` of each request. */
  readonly authorizations: (string | undefined)[] = []
  readonly webhookSecret = "whsec_test"
  /** How many answers are lost: the request takes effect and the connection breaks. */
  loseAnswers = 0
  /** How many requests are lost before they take effect. */
  loseRequests = 0
  readonly #remembered = new Map<string, Answer>()
  readonly #server: Server
  #count = 0

  private constructor() {
    this.#server = createServer((request, response) => void this.#serve(request, response))
  }

  static async start(): Promise<StripeFake> {
    const fake = new StripeFake()
    await new Promise<void>((resolve) => fake.#server.listen(0, "127.0.0.1", resolve))
    return fake
  }

  get url(): string {
    // A listening TCP server has an address of this form.
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  /** As if the customer had entered a card on the page that a setup leads to. */
  enterCard(customerId: string, methodId: string): void {
    const method: FakeMethod = {
      id: methodId,
      object: "payment_method",
      type: "card",
      customer: customerId,
      card: { brand: "visa", last4: "4242" },
    }
    this.methods.set(methodId, method)
    this.#happen("checkout.session.completed", {
      id: this.#id("cs"),
      object: "checkout.session",
      mode: "setup",
      customer: customerId,
    })
  }

  /** As if the bank, or the customer, had decided. */
  decide(intentId: string, status: "succeeded" | "failed"): void {
    const intent = this.intents.get(intentId)
    if (!intent) throw new Error(`The fake knows no ${intentId}`)
    intent.status = status === "succeeded" ? "succeeded" : "requires_payment_method"
    intent.last_payment_error =
      status === "succeeded" ? null : { code: "card_declined", message: "Your card was declined." }
    this.#happen(
      status === "succeeded" ? "payment_intent.succeeded" : "payment_intent.payment_failed",
      intent,
    )
  }

  /** The header that Stripe signs an event with. */
  sign(body: string, secret = this.webhookSecret, atMs = Date.now()): string {
    const seconds = Math.floor(atMs / 1000)
    return `t=${seconds},v1=${createHmac("sha256", secret).update(`${seconds}.${body}`).digest("hex")}`
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const form = await readForm(request)
    const path = (request.url ?? "").split("?")[0] ?? ""
    this.requests.push(`${request.method} ${path}`)
    this.authorizations.push(request.headers.authorization)
    if (this.loseRequests > 0) {
      this.loseRequests--
      return void request.socket.destroy()
    }
    const key = request.headers["idempotency-key"]
    const remembered = typeof key === "string" ? this.#remembered.get(key) : undefined
    const answer =
      remembered ?? this.#answer(request.method ?? "", path, form, new URL(request.url ?? "", this.url))
    if (typeof key === "string") this.#remembered.set(key, answer)
    if (this.loseAnswers > 0) {
      this.loseAnswers--
      return void request.socket.destroy()
    }
    response.writeHead(answer.status, { "content-type": "application/json", "request-id": randomUUID() })
    response.end(JSON.stringify(answer.body))
  }

  #answer(method: string, path: string, form: Form, url: URL): Answer {
    const route = `${method} ${path.replace(/_[A-Za-z0-9]+(?=\/|$)/g, (id) => (/^_(?:methods|intents)$/.test(id) ? id : ":"))}`
    const id = /\/((?:cus|pm|pi)_\w+)/.exec(path)?.[1] ?? ""
    switch (route) {
      case "POST /v1/customers":
        return ok(this.#createCustomer(form))
      case "GET /v1/customers/cus:":
        return found(this.customers.get(id))
      case "POST /v1/customers/cus:":
        return found(this.#updateCustomer(id, form))
      case "GET /v1/customers/cus:/payment_methods":
        return ok({
          object: "list",
          has_more: false,
          data: [...this.methods.values()].filter(({ customer }) => customer === id).toReversed(),
        })
      case "POST /v1/checkout/sessions":
        return ok({
          id: this.#id("cs"),
          object: "checkout.session",
          url: `${this.url}/pay/${form["customer"]}`,
        })
      case "POST /v1/payment_methods/pm:/detach":
        return found(this.#detach(id))
      case "POST /v1/payment_intents":
        return this.#createIntent(form)
      case "GET /v1/payment_intents/pi:":
        return found(this.intents.get(id))
      case "GET /v1/payment_intents":
        return ok({ object: "list", has_more: false, data: this.#listIntents(url) })
      default:
        return {
          status: 404,
          body: { error: { type: "invalid_request_error", message: `Unrecognized request URL ${route}` } },
        }
    }
  }

  #createCustomer(form: Form): FakeCustomer {
    const customer: FakeCustomer = {
      id: this.#id("cus"),
      object: "customer",
      email: form["email"] ?? "",
      metadata: metadataOf(form),
      invoice_settings: { default_payment_method: null },
    }
    this.customers.set(customer.id, customer)
    return customer
  }

  #updateCustomer(id: string, form: Form): FakeCustomer | undefined {
    const customer = this.customers.get(id)
    const method = this.methods.get(form["invoice_settings[default_payment_method]"] ?? "")
    if (customer && method) customer.invoice_settings.default_payment_method = method
    return customer
  }

  #detach(id: string): FakeMethod | undefined {
    const method = this.methods.get(id)
    if (!method) return undefined
    for (const customer of this.customers.values())
      if (customer.invoice_settings.default_payment_method?.id === id)
        customer.invoice_settings.default_payment_method = null
    method.customer = null
    return method
  }

  #listIntents(url: URL): Intent[] {
    const [customer, from, to] = ["customer", "created[gte]", "created[lte]"].map((name) =>
      url.searchParams.get(name),
    )
    return [...this.intents.values()].filter(
      (intent) =>
        intent.customer === customer &&
        intent.created >= Number(from) &&
        intent.created <= Number(to ?? Infinity),
    )
  }

  #createIntent(form: Form): Answer {
    const intent: Intent = {
      id: this.#id("pi"),
      object: "payment_intent",
      amount: Number(form["amount"]),
      currency: form["currency"] ?? "",
      customer: form["customer"] ?? "",
      created: Math.floor(Date.now() / 1000),
      status: "succeeded",
      metadata: metadataOf(form),
      last_payment_error: null,
    }
    this.intents.set(intent.id, intent)
    switch (form["payment_method"]) {
      case cards.declined:
        return this.#refuse(intent, "card_declined", "Your card was declined.")
      case cards.confirm:
        return this.#refuse(
          intent,
          "authentication_required",
          "Your card was declined. This transaction requires authentication.",
        )
      case cards.slow:
        intent.status = "processing"
        this.#happen("payment_intent.processing", intent)
        return ok(intent)
      default:
        this.#happen("payment_intent.succeeded", intent)
        return ok(intent)
    }
  }

  #refuse(intent: Intent, code: string, message: string): Answer {
    intent.status = "requires_payment_method"
    intent.last_payment_error = { code, message }
    this.#happen("payment_intent.payment_failed", intent)
    return { status: 402, body: { error: { type: "card_error", code, message, payment_intent: intent } } }
  }

  /** Events carry their object as it is now, so that an old one delivered late is out of date. */
  #happen(type: string, object: object): void {
    const id = this.#id("evt")
    const body = JSON.stringify({
      id,
      object: "event",
      type,
      created: Math.floor(Date.now() / 1000),
      data: { object },
    })
    this.events.push({ id, body })
  }

  #id(prefix: string): string {
    return `${prefix}_${(++this.#count).toString().padStart(6, "0")}`
  }
}

const ok = (body: unknown): Answer => ({ status: 200, body })
const found = (body: unknown): Answer =>
  body === undefined
    ? {
        status: 404,
        body: {
          error: { type: "invalid_request_error", code: "resource_missing", message: "No such object" },
        },
      }
    : ok(body)

function metadataOf(form: Form): Record<string, string> {
  const entries = Object.entries(form).map(
    ([name, value]) => [/^metadata\[(\w+)\]$/.exec(name)?.[1], value] as const,
  )
  return Object.fromEntries(entries.filter(([name]) => name !== undefined))
}

async function readForm(request: IncomingMessage): Promise<Form> {
  let text = ""
  for await (const chunk of request) text += String(chunk)
  return Object.fromEntries(new URLSearchParams(text))
}
