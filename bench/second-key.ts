/** A key of a second organization, which shares the first one's billing account. */
import { makeOrganization, operatorOf } from "../test/operator.ts"
import type { TestServer } from "../test/server.ts"

export async function secondKey(server: TestServer): Promise<string> {
  const [first] = await (await operatorOf(server)).listAllOrganizations()
  const { secret } = await makeOrganization(server, {
    name: "Second",
    owner: "second@example.com",
    billing_account: first?.billing_account_id,
  })
  return secret
}
