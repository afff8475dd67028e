/** Mounts the router of the console on the page. */
import { QueryClientProvider } from "@tanstack/react-query"
import { RouterProvider } from "@tanstack/react-router"
import { StrictMode } from "react"
import { createRoot } from "react-dom/client"
import { createQueries } from "./api.ts"
import { createConsoleRouter } from "./router.tsx"

const root = document.getElementById("root")
if (root) {
  const queries = createQueries()
  createRoot(root).render(
    <StrictMode>
      <QueryClientProvider client={queries}>
        <RouterProvider router={createConsoleRouter(queries)} />
      </QueryClientProvider>
    </StrictMode>,
  )
}
