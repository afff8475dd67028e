/** What schemas say about values, where they bring no words of their own; imported for its effect. */
import { z } from "zod"

z.config({
  customError: ({ code, input }) => (code === "invalid_type" && input === undefined ? "missing" : undefined),
})
