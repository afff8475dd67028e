/** Mounts the fleet page. */
import { QueryClient, QueryClientProvider } from "@tanstack/react-query"
import { RouterProvider, createRootRoute, createRouter } from "@tanstack/react-router"
import { StrictMode } from "react"
import { createRoot } from "react-dom/client"
import { FleetPage } from "./fleet-page.tsx"

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
