/** What the reference knows of its reader: the organization of last time, and the models it may use. */
import { useQuery } from "@tanstack/react-query"
import { firstModel } from "../playground/models.ts"
import { homeOrganization, modelsQuery, organizationsQuery, sessionQuery } from "../session.ts"
import type { Known } from "./examples.ts"
import { t } from "../i18n/translate.ts"

/** Undefined until it is known. */
export function useKnown(): Known | undefined {
  return useQuery({
    queryKey: ["reference-reader"],
    queryFn: async ({ client }): Promise<Known> => {
      const session = await client.fetchQuery(sessionQuery)
      if (!session) return signedOut
      const organization = homeOrganization(await client.fetchQuery(organizationsQuery))
      if (!organization) return signedOut
      const models = await client.fetchQuery(modelsQuery(organization.id))
      return {
        organizationId: organization.id,
        organizationName: organization.name,
        billingAccountId: organization.billing_account_id,
        userId: session.user.id,
        userName: session.user.name ?? signedOut.userName,
        email: session.user.email,
        models: {
          decisions: firstModel(models, "decisions") || signedOut.models.decisions,
          chat: firstModel(models, "chat") || signedOut.models.chat,
          embeddings: firstModel(models, "embeddings") || signedOut.models.embeddings,
        },
      }
    },
  }).data
}

const signedOut: Known = {
  organizationId: "",
  organizationName: t("Your organization"),
  billingAccountId: "",
  userId: "",
  userName: t("Your name"),
  email: "you@example.com",
  models: { decisions: "your-model", chat: "your-model", embeddings: "your-embedding-model" },
}
