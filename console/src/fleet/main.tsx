/** The entry of the fleet page, which `umpire fleet` serves to operators; it is no part of the console that tenants open. */
import "../../../src/contract/zod-without-eval.ts"
import { QueryClient, QueryClientProvider } from "@tanstack/react-query"
import { RouterProvider, createRootRoute, createRouter } from "@tanstack/react-router"
import { StrictMode } from "react"
import { createRoot } from "react-dom/client"
import { FleetPage } from "./fleet-page.tsx"
import "../styles.css"

const root = document.getElementById("root")
if (root) {
  // The parts of the console ask a router where they are: here, on the only page.
  const router = createRouter({ routeTree: createRootRoute({ component: FleetPage }) })
  createRoot(root).render(
    <StrictMode>
      <QueryClientProvider client={new QueryClient()}>
        {/* The types know the console's own router alone. */}
        <RouterProvider router={router as never} />
      </QueryClientProvider>
    </StrictMode>,
  )
}
