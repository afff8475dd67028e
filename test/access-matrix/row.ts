/** A row of the access matrix, what it may name, and the answers that many endpoints have in common. */
import type { Permission, Role } from "../../src/contract/access.ts"

/** What a row can name in its path and body; made anew for each case, so that one case cannot disturb another. */
export interface Places {
  readonly org: string
  readonly account: string
  /** A member of the organization who makes none of the calls. */
  readonly member: () => Promise<string>
  /** An API key with `api-admin`. */
  readonly key: () => Promise<string>
  /** An open invitation: its id and its token. */
  readonly invitation: () => Promise<{ readonly id: string; readonly token: string }>
  /** A question set with a version that has the label `stable`, an example and a frozen case. */
  readonly questionSet: () => Promise<{
    readonly id: string
    readonly example: string
    readonly case: string
    /** Of a job that waits: nothing runs jobs here. */
    readonly job: string
    readonly artefact: string
  }>
  /** A webhook with a delivery that waits, and an alert rule. */
  readonly alerts: () => Promise<{
    readonly webhook: string
    readonly delivery: string
    readonly rule: string
  }>
  /** Kept content: its sequence, and the set and item of its review. */
  readonly content: () => Promise<{ readonly seq: string; readonly set: string; readonly item: string }>
  /** A guardrail and the name of its question set. */
  readonly guardrail: () => Promise<{ readonly id: string; readonly set: string }>
  /** A virtual model's id. */
  readonly virtualModel: () => Promise<string>
  /** A connected model's id. */
  readonly connectedModel: () => Promise<string>
  /** A one-time link of some user. */
  readonly link: () => Promise<string>
}

export interface Request {
  readonly path: string
  readonly body?: unknown
  readonly headers?: Record<string, string>
}

export interface Row {
  /** Method and path as the contract writes them. */
  readonly endpoint: string
  /** Statuses for sessions of: primary owner, owner, member, someone of another organization. */
  readonly sessions: string
  /** For keys of the organization with only: inference, api-read, api-write, api-admin. */
  readonly keys: string
  /** For keys of a primary owner, owner and member with all four permissions. */
  readonly userKeys: string
  /** For workload tokens with only: inference, api-read, api-write, api-admin. */
  readonly workloads: string
  /** For a key of another organization with all four permissions. */
  readonly foreignKey: string
  /** Without credentials; 401 unless the endpoint is open to anyone. Wrong credentials are always 401. */
  readonly nobody?: string
  /** With a bearer value that identifies no caller; 401 unless the endpoint reads that header itself. */
  readonly unknown?: string
  readonly request: (places: Places) => Request | Promise<Request>
}

export const sessionRoles: readonly (Role | "outsider")[] = ["primary_owner", "owner", "member", "outsider"]

export const singlePermissions: readonly Permission[] = ["inference", "api-read", "api-write", "api-admin"]

export const userKeyRoles: readonly ("primary_owner" | "owner" | "member")[] = [
  "primary_owner",
  "owner",
  "member",
]

export const noWorkload = "403 403 403 403"

/** Read with `api-read`; not for workload tokens. */
export const read = {
  sessions: "200 200 200 404",
  keys: "403 200 403 403",
  userKeys: "200 200 200",
  workloads: noWorkload,
  foreignKey: "404",
}

/** Changed with `api-admin`, which member sessions do not hold; `done` is the status of success. */
export const administered = (done: string) => ({
  sessions: `${done} ${done} 403 404`,
  keys: `403 403 403 ${done}`,
  userKeys: `${done} ${done} 403`,
  workloads: noWorkload,
  foreignKey: "404",
})

/** Changed with `api-write`, which member sessions hold too. */
export const written = (done: string) => ({
  sessions: `${done} ${done} ${done} 404`,
  keys: `403 403 ${done} 403`,
  userKeys: `${done} ${done} ${done}`,
  workloads: noWorkload,
  foreignKey: "404",
})

/** Open to anyone, and everyone gets the same. */
export const open = (status: string) => ({
  sessions: `${status} ${status} ${status} ${status}`,
  keys: `${status} ${status} ${status} ${status}`,
  userKeys: `${status} ${status} ${status}`,
  workloads: `${status} ${status} ${status} ${status}`,
  foreignKey: status,
  nobody: status,
})

/** Inference: also for workload tokens that carry it; an outsider's session names an organization that is not its own. */
export const inference = {
  sessions: "200 200 200 403",
  keys: "200 403 403 403",
  userKeys: "200 200 200",
  workloads: "200 403 403 403",
  foreignKey: "403",
}

export const setsAt = ({ org }: Places, rest = ""): string => `/v1/organizations/${org}/question_sets${rest}`

export const setAt =
  (rest: string, body?: unknown, headers: Record<string, string> = {}) =>
  async (places: Places): Promise<Request> => {
    const set = await places.questionSet()
    const named = rest
      .replace("EXAMPLE", set.example)
      .replace("CASE", set.case)
      .replace("JOB", set.job)
      .replace("ARTEFACT", set.artefact)
    return {
      path: setsAt(places, `/${set.id}${named}`),
      headers,
      ...(body === undefined ? {} : { body }),
    }
  }
