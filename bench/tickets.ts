/**
 * Support tickets of an invented company, with three questions: which queue, which priority (by a rule of the company that no
 * text says: tier, product and what happened), and whether the writer is angry. The same seed gives the same tickets.
 */
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { type Random, seededRandom } from "../src/scoring/teach/random.ts"

export const ticketCount = 900

const tiers = ["bronze", "silver", "gold", "enterprise"] as const
const products = ["Halcyon", "Brindle", "Quarry", "Tamsin", "Orbit-9", "KX-200", "Lumen", "Pello"] as const
/** Others run on these: what happens to them comes sooner. */
const criticalProducts: ReadonlySet<string> = new Set(["KX-200", "Quarry"])
const regions = ["north", "south", "coast", "islands", "overseas"] as const
const channels = ["mail", "phone", "chat", "portal"] as const
const months = ["January", "March", "April", "June", "July", "September", "October", "November"] as const
const places = [
  "warehouse",
  "Leeds office",
  "factory floor",
  "second building",
  "branch in Porto",
  "lab",
] as const
const people = [
  "our accountant",
  "a new colleague",
  "the night shift",
  "my manager",
  "half of the team",
  "an auditor",
] as const

const queues = {
  "Payments desk": [
    ["Charged twice", "We were charged twice for {product} in {month}, {amount} euros each time."],
    ["Invoice question", "The {month} invoice shows {amount} euros, but our contract says less."],
    ["Refund", "Please send back the {amount} euros that you took after we had cancelled."],
    ["VAT number", "Our tax number is missing on the last bill and {people} cannot book it."],
    ["Card declined", "Your page declines our card although the bank says that all is well."],
    ["Discount missing", "We were promised ten percent off {product} and the bill does not show it."],
    ["Change of billing address", "From {month} on, bills should go to the {place}, not to me."],
    ["Double entry on statement", "Two entries of {amount} appear on the statement and {people} asks why."],
  ],
  "Platform on-call": [
    ["{product} does not answer", "{product} has answered with error {code} since this morning."],
    ["Slow since update", "After the update {product} takes a minute to open anything."],
    ["Sync stuck", "The sync of {product} stops at {percent} percent and starts again."],
    ["Crash", "{product} closes by itself when {people} opens the monthly report."],
    ["Wrong totals", "The totals on the overview of {product} do not add up, code {code}."],
    ["Export broken", "The export of {product} writes an empty file, whatever we choose."],
    ["Notifications late", "Messages from {product} arrive hours late in the {place}."],
    ["Screen stays white", "In the {place} the screen of {product} stays white after the start."],
  ],
  "Identity team": [
    ["Cannot sign in", "{people} cannot sign in; the code by phone never arrives."],
    ["Password reset", "The link to reset the password says that it has expired at once."],
    ["Remove a user", "Please take {people} off our account before the end of {month}."],
    ["Single sign-on", "We would like to connect {product} with our own directory of users."],
    ["Locked", "After three tries the account is locked and the page tells us to wait {percent} hours."],
    ["Wrong permissions", "{people} sees contracts in {product} that are for managers alone."],
    ["Second factor", "A phone was lost and with it the second factor for {product}."],
    ["New owner", "The owner of the account left us in {month}; who can name another one?"],
  ],
  "Field logistics": [
    ["Parcel missing", "The parcel with the {product} never reached the {place}."],
    ["Wrong item", "We ordered {product} and found something else in the box."],
    ["Engineer did not come", "The engineer was announced for Monday and did not come to the {place}."],
    ["Return label", "How do we send the old {product} back? There was no label in the box."],
    ["Delivery date", "When will the second half of order {code} reach the {place}?"],
    ["Damaged on arrival", "The casing of the {product} was cracked when the driver handed it over."],
    ["Change of address", "Please deliver to the {place} instead, the gate is closed in {month}."],
    ["Installation", "We need somebody to mount {product} in the {place} in {month}."],
  ],
  "Product ideas": [
    ["Dark colours", "It would be good if {product} had dark colours for {people}."],
    ["An idea", "Could {product} show the {month} figures beside those of last year?"],
    ["Shortcut keys", "{people} would love keys for the steps that we do all day in {product}."],
    ["Calendar", "A calendar in {product} would save us a second tool."],
    ["More languages", "Do you plan {product} in Portuguese? The {place} would use it."],
    ["Bulk edit", "Changing {percent} entries one by one is tedious; can {product} do it at once some day?"],
    ["Interface for partners", "We would build on {product} if it had an open interface."],
    ["Print layout", "A smaller print layout of {product} would fit our folders."],
  ],
} as const
type Queue = keyof typeof queues

/** What makes a ticket grave, whatever it is about. */
const grave = [
  "All records of {month} are gone.",
  "Nobody in the company can work at the moment.",
  "Strangers have seen names and addresses of our customers.",
  "The whole site stands still because of it.",
  "We have lost data that we are obliged to keep.",
  "Somebody from outside was logged in as one of us.",
] as const
const mild = [
  "It is not pressing.",
  "We have found a way around it for now.",
  "It happened once in the {place} and once at home.",
  "{people} noticed it first.",
  "We use {product} since {month}.",
  "I attach a picture.",
  "It is the same in every browser.",
  "The order number is {code}.",
  "You may call us in the afternoon.",
  "I have read the manual up to page {percent}.",
] as const
const angry = [
  "This is the third time I write and I am done being patient.",
  "I have never been treated so badly by a supplier.",
  "Do you even read what people send you?",
  "Frankly, this is a disgrace.",
  "Spare me another canned reply.",
  "You take our money quickly enough, but when something fails, silence.",
  "I am furious.",
  "If nobody calls me today, we are gone, and everybody will hear why.",
  "What a joke of a service.",
  "How hard can it be to do your job?",
  "My whole week was wasted by your carelessness.",
  "Unbelievable. Again.",
  "Congratulations, you have managed to make it worse.",
  "I expected nothing and you still disappointed me!!",
] as const
const calm = [
  "Thank you for looking into it.",
  "Sorry to bother you with this.",
  "We are otherwise quite happy.",
  "A short answer would be enough.",
  "It is a pity, but such things happen.",
  "I am a little worried about it.",
  "Your colleague was very kind last time.",
  "Please tell us what you need from our side.",
  "No hurry on our side.",
  "We are disappointed, but we trust you to sort it out.",
  "Kind regards from all of us.",
  "It would help us a lot.",
] as const
const openings = [
  "Hello,",
  "Dear team,",
  "Hi there,",
  "Good morning,",
  "To whom it may concern,",
  "",
  "",
  "",
] as const

interface Ticket {
  readonly text: string
  readonly queue: Queue
  readonly priority: string
  readonly angry: "yes" | "no"
}

const priorities = ["Low", "Normal", "High", "Urgent"] as const

/** The company's rule. */
function priorityOf(ticket: { tier: string; product: string; queue: Queue; isGrave: boolean }): string {
  const { tier, product, queue, isGrave } = ticket
  const isCritical = criticalProducts.has(product)
  const isGreat = tier === "gold" || tier === "enterprise"
  if (isGrave) return isGreat || isCritical ? "Urgent" : "High"
  if (tier === "enterprise") return "High"
  if (tier === "gold") return isCritical ? "High" : "Normal"
  if (tier === "silver") return isCritical || queue === "Payments desk" ? "Normal" : "Low"
  return isCritical ? "Normal" : "Low"
}

function ticketOf(random: Random, number: number): Ticket {
  const pick = <Item>(from: readonly Item[]): Item => from[Math.floor(random() * from.length)] as Item
  const queue = pick(Object.keys(queues)) as Queue
  const [tier, product, isGrave, isAngry] = [pick(tiers), pick(products), random() < 0.2, random() < 0.35]
  const values: Readonly<Record<string, () => string>> = {
    product: () => product,
    month: () => pick(months),
    place: () => pick(places),
    people: () => pick(people),
    amount: () => String(20 + Math.floor(random() * 900)),
    code: () => String(1_000 + Math.floor(random() * 9_000)),
    percent: () => String(3 + Math.floor(random() * 95)),
  }
  const fill = (template: string): string => {
    const filled = template.replaceAll(/\{(\w+)\}/g, (_, name: string) => values[name]?.() ?? "")
    return filled.charAt(0).toUpperCase() + filled.slice(1)
  }
  const [subject, problem] = pick<readonly [string, string]>(queues[queue])
  const parts = [
    fill(problem),
    ...(isGrave ? [fill(pick(grave))] : []),
    ...(random() < 0.6 ? [fill(pick(mild))] : []),
  ]
  const tone = isAngry ? fill(pick(angry)) : random() < 0.7 ? fill(pick(calm)) : ""
  const body = [pick(openings), ...(random() < 0.3 ? [tone, ...parts] : [...parts, tone])]
  const text = JSON.stringify({
    ticket: 40_000 + number,
    customer: { tier, region: pick(regions), seats: 1 + Math.floor(random() * 400) },
    product,
    channel: pick(channels),
    subject: fill(subject),
    body: body.filter((part) => part !== "").join(" "),
  })
  return {
    text,
    queue,
    priority: priorityOf({ tier, product, queue, isGrave }),
    angry: isAngry ? "yes" : "no",
  }
}

/** The same ones first, however many. */
export function ticketsOf(count: number): Ticket[] {
  const random = seededRandom(43)
  return Array.from({ length: count }, (_, number) => ticketOf(random, number))
}

interface TicketQuestion {
  readonly set: string
  readonly question: string
  readonly options: readonly string[]
  readonly goldOf: (ticket: Ticket) => string
}

export const ticketQuestions: readonly TicketQuestion[] = [
  {
    set: "tickets_queue",
    question: "Which queue should handle this ticket?",
    options: Object.keys(queues),
    goldOf: ({ queue }) => queue,
  },
  {
    set: "tickets_priority",
    question: "Which priority has this ticket?",
    options: priorities,
    goldOf: ({ priority }) => priority,
  },
  {
    set: "tickets_angry",
    question: "Is the customer angry?",
    options: ["yes", "no"],
    goldOf: ({ angry: own }) => own,
  },
]

export const ticketSets = ticketQuestions.map(({ set }) => set)

/** Writes one evaluation set for each question. */
export function writeTickets(folder: string): void {
  const tickets = ticketsOf(ticketCount)
  mkdirSync(folder, { recursive: true })
  for (const { set, question, options, goldOf } of ticketQuestions) {
    const lines = tickets.map((ticket) =>
      JSON.stringify({ text: ticket.text, question, options, gold: goldOf(ticket) }),
    )
    writeFileSync(join(folder, `${set}.jsonl`), `${lines.join("\n")}\n`)
  }
}
