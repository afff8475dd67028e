/** `umpire workers`: takes a worker out of service for maintenance, and puts it back, at every gateway of the installation. */
import { operatorCommand, operates } from "./actions.ts"

const args = { worker: "which worker? its id as umpire status lists it" }

export const workers = operatorCommand({
  usage: [
    "umpire workers drain WORKER [--json]    it finishes what it has and gets no new requests",
    "umpire workers undrain WORKER [--json]  it gets requests again",
  ],
  actions: {
    drain: operates("drainWorker", {
      args,
      draw: ({ worker }) => `${worker} gets no new requests; other gateways see it within 5 seconds\n`,
    }),
    undrain: operates("undrainWorker", {
      args,
      draw: ({ worker }) => `${worker} gets requests again; other gateways see it within 5 seconds\n`,
    }),
  },
})
