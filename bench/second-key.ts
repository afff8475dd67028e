/** A key of a second organization, which shares the first one's billing account. */
import { operateOverSocket } from "../src/cli/operator.ts"
import { operatorAddress } from "../src/server/operator-socket.ts"
import type { TestServer } from "../test/server.ts"

export async function secondKey(server: TestServer): Promise<string> {
  const address = operatorAddress(server.dataDirectory)
  const operate = async (operation: string, input: unknown): Promise<unknown> =>
    (await operateOverSocket(address, operation, input))?.result
  // What these operations answer is printed by `umpire orgs` and `umpire keys` with --json.
  const listed = (await operate("orgs.list", {})) as { billing_account_id: string }[]
  const made = (await operate("orgs.create", {
    name: "Second",
    owner: "second@example.com",
    billing_account: listed[0]?.billing_account_id,
  })) as { id: string }
  const key = (await operate("keys.create", {
    organization: made.id,
    name: "bench",
    permissions: ["inference"],
  })) as { secret: string }
  return key.secret
}
