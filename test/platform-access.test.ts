/** Walks the whole matrix: every endpoint for every kind of caller. */
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { type Permission, type Role, permissions } from "../src/contract/access.ts"
import type { Endpoint } from "../src/contract/endpoint.ts"
import { table } from "../src/contract/table.ts"
import { createOneTimeLink } from "../src/control/sessions.ts"
import {
  type Places,
  type Row,
  accessMatrix,
  sessionRoles,
  singlePermissions,
  userKeyRoles,
} from "./access-matrix.ts"
import { openTestDatabase } from "./database.ts"
import { type Platform, seeder, startPlatform, workloadToken } from "./platform.ts"
import { seedArtefact } from "./taught.ts"

let platform: Platform
let seed: ReturnType<typeof seeder>
let places: Places
let foreignOrg: string
let users: Record<Role | "outsider", string>
let made = 0

beforeAll(async () => {
  platform = await startPlatform(await openTestDatabase())
  seed = seeder(platform)
  const account = await seed.billingAccount()
  const org = await seed.organization("Matrix", account)
  foreignOrg = await seed.organization("Elsewhere", await seed.billingAccount())
  const user = async (role: Role | "outsider"): Promise<string> => {
    const id = await seed.user(`${role}@matrix.test`)
    await (role === "outsider" ? seed.member(foreignOrg, id, "primary_owner") : seed.member(org, id, role))
    return id
  }
  users = {
    primary_owner: await user("primary_owner"),
    owner: await user("owner"),
    member: await user("member"),
    outsider: await user("outsider"),
  }
  const owner = await seed.session(users.primary_owner)
  places = {
    org,
    account,
    member: async () => {
      const id = await seed.user(`extra${++made}@matrix.test`)
      await seed.member(org, id, "member")
      return id
    },
    key: async () => (await seed.key(org, ["api-admin"])).id,
    invitation: async () => {
      const body = { email: `invited${++made}@matrix.test`, role: "member" }
      const sent = await platform.send("POST", `/v1/organizations/${org}/invites`, { bearer: owner, body })
      return { id: sent.body.data.id, token: sent.body.data.accept_token }
    },
    questionSet: async () => {
      const at = `/v1/organizations/${org}/question_sets`
      const send = async (method: string, path: string, body?: unknown) =>
        (await platform.send(method, at + path, { bearer: owner, ...(body === undefined ? {} : { body }) }))
          .body
      const { id } = (await send("POST", "", { name: `set-${++made}`, model: "open", questions: [rude] }))
        .data
      await send("PUT", `/${id}/labels/stable`, { version: 1 })
      await send("POST", `/${id}/examples`, { rows: [{ input: "Go away", labels: { rude: true } }] })
      await send("POST", `/${id}/cases`, { cases: [{ input: "Go away", expected: { rude: true } }] })
      const [example] = (await send("GET", `/${id}/examples`)).data
      const [frozen] = (await send("GET", `/${id}/cases`)).data
      const job = (await send("POST", `/${id}/teach`, {})).data
      // Jobs of an organization are few at a time; nothing runs them here.
      await platform.database.query("UPDATE question_set_jobs SET state = 'succeeded'")
      const artefact = await seedArtefact(platform.database, id)
      return { id, example: example.id, case: frozen.id, job: job.id, artefact }
    },
    link: async () => {
      const id = await seed.user(`linked${++made}@matrix.test`)
      return (await createOneTimeLink(platform.database, id, new Date())).link
    },
  }
})

afterAll(async () => {
  await platform.close()
  await platform.database.close()
})

const rude = { type: "predicate", name: "rude", instructions: "Is it rude?" }

interface Case {
  readonly who: string
  readonly status: number
  readonly bearer: () => Promise<string | null>
}

function casesOf(row: Row): Case[] {
  return [
    { who: "no token", status: Number(row.nobody ?? 401), bearer: async () => null },
    { who: "garbage", status: 401, bearer: async () => "garbage" },
    {
      who: "expired session",
      status: 401,
      bearer: async () => await seed.session(users.primary_owner, -1),
    },
    ...zip(row.sessions, sessionRoles, (role) => ({
      who: `session of ${role}`,
      // A user of its own, for some endpoints change the user or end the session.
      bearer: async () => await seed.session(await twinOf(role)),
    })),
    ...zip(row.keys, singlePermissions, (permission) => ({
      who: `organization key with ${permission}`,
      bearer: async () => (await seed.key(places.org, [permission])).value,
    })),
    ...zip(row.userKeys, userKeyRoles, (role) => ({
      who: `user key of ${role}`,
      bearer: async () => (await seed.key(places.org, permissions, users[role])).value,
    })),
    ...zip(row.workloads, singlePermissions, (permission: Permission) => ({
      who: `workload token with ${permission}`,
      bearer: async () => workloadToken(places.org, [permission]),
    })),
    {
      who: "key of another organization",
      status: Number(row.foreignKey),
      bearer: async () => (await seed.key(foreignOrg, permissions)).value,
    },
  ]
}

async function twinOf(role: Role | "outsider"): Promise<string> {
  const id = await seed.user(`twin${++made}@matrix.test`)
  await (role === "outsider"
    ? seed.member(foreignOrg, id, "primary_owner")
    : seed.member(places.org, id, role))
  return id
}

function zip<Item>(
  statuses: string,
  items: readonly Item[],
  make: (item: Item) => Omit<Case, "status">,
): Case[] {
  const given = statuses.split(" ")
  if (given.length !== items.length)
    throw new Error(`the row has ${given.length} statuses for ${items.length}`)
  return items.map((item, index) => ({ ...make(item), status: Number(given[index]) }))
}

const existing = new Set(Object.values<Endpoint>(table).map(({ method, path }) => `${method} ${path}`))

test("every endpoint has exactly one row in the matrix, and every row an endpoint", () => {
  const named = accessMatrix.map(({ endpoint }) => endpoint)
  expect(named.toSorted()).toEqual([...existing].toSorted())
})

describe.each(accessMatrix)("$endpoint", (row) => {
  test.each(casesOf(row))("$who: $status", async ({ status, bearer }) => {
    const { path, ...sent } = await row.request(places)
    const [method = "GET"] = row.endpoint.split(" ")
    const answer = await platform.send(method, path, { bearer: await bearer(), ...sent })
    expect(answer.status, JSON.stringify(answer.body)).toBe(status)
    if (status >= 400) expect(answer.body.error).toBeTruthy()
  })
})
