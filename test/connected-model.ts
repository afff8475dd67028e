/** A model at another server, as it is stored: of tests that ask none. */
import type { ConnectedModel } from "../src/contract/platform/connected-models.ts"
import { connectedModels } from "../src/store/connected-models.ts"
import type { Platform } from "./platform.ts"

export const connectedModel: ConnectedModel = {
  sku: "elsewhere",
  dialect: "openai",
  url: "https://models.example/v1",
  model: "large",
  context_tokens_max: 128_000,
  price_m_input_tokens_usd: "1",
  price_m_input_cache_read_tokens_usd: "0.1",
  price_m_output_tokens_usd: "5",
}

/** Answers its id. */
export async function seedConnectedModel(
  { database, ids }: Pick<Platform, "database" | "ids">,
  organizationId: string,
  sku: string,
): Promise<string> {
  const [id, now] = [ids.next("cm"), new Date()]
  const settings = { ...connectedModel, sku }
  await connectedModels.insert(
    database,
    { id, organizationId, createdAt: now, updatedAt: now },
    { sku, settings, sealedKey: null, decides: "schema", createdBy: null },
  )
  return id
}
