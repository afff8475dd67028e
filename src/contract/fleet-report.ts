/** What gateways tell operators of themselves, as `umpire status` and the fleet page read it. */
import { z } from "zod"

/** A model in the gateway's own machine that is in memory, or was. */
const EngineReport = z.object({
  model: z.string(),
  /** A model that both decides and chats has a process for each. */
  purpose: z.enum(["decisions", "generation"]),
  state: z.enum(["loading", "loaded", "unloading", "unloaded"]),
  memory_bytes: z.number(),
  in_use: z.number(),
  idle_s: z.number(),
  /** How often it was loaded since the gateway started, and how long the last time took. */
  loads: z.number(),
  load_ms: z.number().nullable(),
})
export type EngineReport = z.infer<typeof EngineReport>

export const WorkerState = z.object({
  id: z.string(),
  region: z.string(),
  healthy: z.boolean(),
  drained: z.boolean(),
  breaker: z.string(),
  running: z.number(),
  waiting: z.number(),
  outstanding_tokens: z.number(),
  latency_ms: z.number().nullable(),
  failures: z.number(),
})
export type WorkerState = z.infer<typeof WorkerState>

export const GatewayState = z.object({
  gateway_id: z.string(),
  version: z.string(),
  url: z.string(),
  state: z.string(),
  region: z.string(),
  uptime_s: z.number(),
  memory_bytes: z.number(),
  regions: z.array(z.object({ id: z.string(), country: z.string() })).readonly(),
  models: z.array(z.object({ model: z.string(), workers: z.array(WorkerState).readonly() })).readonly(),
  /** A gateway of an older version does not tell. */
  engines: z.array(EngineReport).readonly().default([]),
  journal: z.object({ bytes: z.number(), lag_ms: z.number() }),
  leases: z.array(z.object({ billing_account_id: z.string(), held_ticks: z.string() })).readonly(),
})
export type GatewayState = z.infer<typeof GatewayState>

export const FleetState = z.object({
  drained_workers: z.array(z.string()).readonly(),
  gateways: z.array(GatewayState.extend({ seen_s_ago: z.number() })),
})
export type FleetState = z.infer<typeof FleetState>

/** Three times as often as a gateway tells of itself. */
const silentAfterS = 15

export const isSilent = ({ seen_s_ago }: { seen_s_ago: number }): boolean => seen_s_ago > silentAfterS

const ticksPerDollar = 1e10

/** The credit that a gateway holds, in US dollars. */
export const heldDollars = (leases: GatewayState["leases"]): number =>
  leases.reduce((total, { held_ticks }) => total + Number(held_ticks), 0) / ticksPerDollar

/** A model in a gateway's own machine, of whichever gateway: every gateway of a region calls its own so. */
export const isLocalWorker = (workerId: string): boolean => /\/local#[0-9]+$/.test(workerId)
